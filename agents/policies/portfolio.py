"""Joining kernels that are best on different shapes into one file.

Kernels of one code that differ in constants alone become that code with constants that depend on the shape.
Others keep their code, each in a namespace of its own with constants and scratch buffers of its own, and
launches whose `when` holds on its shapes. What comes out is a candidate like any other: the judge decides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_scientist.tools.errors import ExpressionError, PlanError
from kernel_scientist.tools.expressions import Expression
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.plan import ConstantValue, Launch, Plan, toml_literal

from .normal_form import code_form
from .split_shapes import Leaf, Shape, Split, conditional, conditions, grow

__all__ = ["JoinError", "join_kernels"]

_INCLUDE = re.compile(r"^[^\S\n]*#[^\S\n]*include[^\S\n]*(<[^>\n]+>)[^\n]*$", re.MULTILINE)
_DEFINE = re.compile(r"^[^\S\n]*#[^\S\n]*define[^\S\n]+(\w+)", re.MULTILINE)
_DECLARED = re.compile(r"\b(?:constexpr|const|struct|class|enum|using|typedef)\b[^;={(]*?\b(\w+)\s*[;={(]")
_PRAGMA_ONCE = re.compile(r"^[^\S\n]*#[^\S\n]*pragma[^\S\n]+once\b[^\n]*$", re.MULTILINE)
_LITERAL_OR_NAME = re.compile(
    r"(?P<keep>//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<name>[A-Za-z_]\w*)",
    re.DOTALL | re.ASCII,
)
# Through these a name can be told or made from its letters, so that it cannot be exchanged.
_BOUND_TO_NAMES = re.compile(r"##|\bR\"|extern\s+\"C\"|(?m:^[^\S\n]*#[^\S\n]*define\b[^\n]*[^#]#[^#])")


class JoinError(Exception):
    """These kernels cannot be joined; the text says why."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One kernel under names of its own: `when` says on which shapes it runs."""

    number: int
    kernel: Kernel
    when: str

    @property
    def namespace(self) -> str:
        return f"variant_{self.number}"

    def constant(self, name: str) -> str:
        return f"V{self.number}_{name}"

    def scratch(self, name: str) -> str:
        return f"v{self.number}_{name}"


def join_kernels(kernels: Sequence[Kernel], shapes: Sequence[Shape], winners: Sequence[int]) -> Kernel:
    """One kernel that runs `kernels[winners[i]]` on `shapes[i]`, and on others as a tree over them decides.

    Every kernel wins on some shape. Raises `JoinError` where the texts do not allow it.
    """
    tree = grow(shapes, winners)
    try:
        if _same_code(kernels):
            return Kernel.parse(_with_shape_constants(kernels, tree))
        return Kernel.parse(_with_namespaces(kernels, tree))
    except (PlanError, ExpressionError) as error:
        raise JoinError(f"the joined plan is not one: {error}") from None


def _same_code(kernels: Sequence[Kernel]) -> bool:
    """Whether they differ in the values of constants alone."""
    first = kernels[0]
    return all(
        list(one.plan.constants) == list(first.plan.constants)
        and code_form(one) is not None
        and code_form(one) == code_form(first)
        for one in kernels[1:]
    )


def _with_shape_constants(kernels: Sequence[Kernel], tree: Leaf | Split) -> str:
    first = kernels[0]
    constants: dict[str, ConstantValue] = {}
    for name, value in first.plan.constants.items():
        values = [one.plan.constants[name] for one in kernels]
        alike = all(type(one) is type(value) and one == value for one in values)
        constants[name] = value if alike else conditional(tree, [_operand(one) for one in values])
    names = {name: name for name in constants}
    fixed = {name for name, value in constants.items() if value != first.plan.constants[name]}
    lines = [*_constants(constants), *_tune(first.plan, fixed), *_scratch(first.plan, names, "")]
    lines += [line for one in first.plan.launches for line in _launch(one, names, one.kernel, "")]
    return _file(lines, first.code)


def _operand(value: ConstantValue) -> str:
    return f"({value})" if isinstance(value, str) else repr(value)


def _with_namespaces(kernels: Sequence[Kernel], tree: Leaf | Split) -> str:
    parts = [_Part(number, one, conditions(tree, number)) for number, one in enumerate(kernels)]
    lines: list[str] = []
    constants: dict[str, ConstantValue] = {}
    for part in parts:
        names = _names(part)
        constants |= {
            names[name]: _renamed(value, names) if isinstance(value, str) else value
            for name, value in part.kernel.plan.constants.items()
        }
    lines += _constants(constants)
    for part in parts:
        # A variant that does not run needs no scratch, and none must be filled for it.
        lines += _scratch(part.kernel.plan, _names(part), part.when)
    for part in parts:
        names = _names(part)
        for launch in part.kernel.plan.launches:
            kernel = _qualified(launch.kernel, part, names)
            lines += _launch(launch, names, kernel, part.when)
    includes = dict.fromkeys(found for one in kernels for found in _INCLUDE.findall(one.code))
    head = "".join(f"#include {header}\n" for header in includes)
    return _file(lines, head + "".join(map(_namespaced, parts)))


def _qualified(kernel: str, part: _Part, names: Mapping[str, str]) -> str:
    """The kernel's name in its namespace; what the code declares among template arguments is there too."""
    name, angle, arguments = kernel.removeprefix("::").partition("<")
    declared = _DECLARED.findall(part.kernel.code)
    inside = {word: f"{part.namespace}::{word}" for word in declared if word not in names}
    return f"{part.namespace}::{name}{angle}{_exchange(arguments, {**inside, **names})}"


def _names(part: _Part) -> dict[str, str]:
    """The new names of what the part's plan declares."""
    plan = part.kernel.plan
    names = {name: part.constant(name) for name in plan.constants}
    return names | {one.name: part.scratch(one.name) for one in plan.scratch}


def _namespaced(part: _Part) -> str:
    source = part.kernel.code
    if _BOUND_TO_NAMES.search(source):
        raise JoinError(f"kernel {part.number} makes text of names, so its names cannot be changed")
    if part.namespace in source or any(part.constant(name) in source for name in part.kernel.plan.constants):
        raise JoinError(f"kernel {part.number} uses a name that its variant would get")
    constants = {name: part.constant(name) for name in part.kernel.plan.constants}
    code = _exchange(_PRAGMA_ONCE.sub("", _INCLUDE.sub("", source)), constants).strip("\n")
    # Macros know no namespaces: what one variant defines must not reach the next.
    undefined = "".join(f"#undef {name}\n" for name in dict.fromkeys(_DEFINE.findall(code)))
    return f"\nnamespace {part.namespace} {{\n{code}\n{undefined}}}  // namespace {part.namespace}\n"


def _exchange(code: str, names: Mapping[str, str]) -> str:
    """The code with whole names exchanged, outside of comments and literals."""
    return _LITERAL_OR_NAME.sub(lambda found: found["keep"] or names.get(found["name"], found["name"]), code)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """An expression under other names."""

    class _Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(names.get(node.id, node.id), node.ctx)

    tree = ast.parse(Expression.parse(text).text.strip(), mode="eval").body
    changed: ast.AST = _Rename().visit(tree)
    return ast.unparse(changed)


def _constants(constants: Mapping[str, ConstantValue]) -> list[str]:
    written = [f"{name} = {toml_literal(value)}" for name, value in constants.items()]
    return ["[constants]", *written] if written else []


def _tune(plan: Plan, fixed: set[str]) -> list[str]:
    """The values still worth trying: of constants that are the same on every shape."""
    left = {name: values for name, values in plan.tune.items() if name not in fixed}
    if not left:
        return []
    rows = [f"{name} = [{', '.join(map(toml_literal, values))}]" for name, values in left.items()]
    return ["[tune]", *rows, f"where = [{', '.join(map(toml_literal, plan.where))}]"]


def _scratch(plan: Plan, names: Mapping[str, str], when: str) -> list[str]:
    lines: list[str] = []
    for one in plan.scratch:
        size = _renamed(one.size.text, names)
        lines += [
            "[[scratch]]",
            f"name = {toml_literal(names.get(one.name, one.name))}",
            f"dtype = {toml_literal(one.dtype)}",
            f"size = {toml_literal(f'({size}) if ({when}) else 1' if when else size)}",
            *([f"init = {one.init!r}"] if one.init is not None else []),
        ]
    return lines


def _launch(launch: Launch, names: Mapping[str, str], kernel: str, when: str) -> list[str]:
    tests = [f"({when})"] if when else []
    tests += [f"({_renamed(launch.when.text, names)})"] if launch.when is not None else []
    return [
        "[[launch]]",
        *([f"when = {toml_literal(' and '.join(tests))}"] if tests else []),
        f"repeat = {toml_literal(_renamed(launch.repeat.text, names))}",
        f"kernel = {toml_literal(kernel)}",
        f"grid = {_list(launch.grid, names)}",
        f"block = {_list(launch.block, names)}",
        f"lds = {toml_literal(_renamed(launch.lds.text, names))}",
        f"args = {_list(launch.args, names)}",
    ]


def _list(expressions: Sequence[Expression], names: Mapping[str, str]) -> str:
    return f"[{', '.join(toml_literal(_renamed(one.text, names)) for one in expressions)}]"


def _file(plan: Sequence[str], code: str) -> str:
    text = "\n".join(plan)
    if "*/" in text:
        raise JoinError("the plan would hold the end of a comment")
    return f"/* plan\n{text}\n*/\n{code.lstrip(chr(10))}"
