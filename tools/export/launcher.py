"""The host functions of an exported HIP file that run the launch plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..dtypes import itemsize, numpy_dtype
from ..expressions import Expression
from ..kernel import Kernel, Launch, Scratch
from ..problem import Problem
from .cpp import Kind, Translation, literal, translate
from .device_code import variant_name
from .names import Names, parameter_kind, parameter_type, pointer_type
from .portfolio import Variant

__all__ = ["Launcher"]

_MOST_GRID_X, _MOST_GRID, _MOST_BLOCK = 2**31 - 1, 65535, 1024
_MOST_LAUNCHES = 4096
_WORDS = {1: "std::uint8_t", 2: "std::uint16_t", 4: "std::uint32_t", 8: "std::uint64_t"}


class Launcher:
    """Writes ``launch``, and ``workspace_bytes`` where the plan has scratch buffers."""

    def __init__(self, kernel: Kernel, problem: Problem, variants: Sequence[Variant], names: Names) -> None:
        self._plan = kernel.plan
        self._problem = problem
        self._variants = variants
        self._names = names
        self._scalars: dict[str, Kind] = {
            scalar.name: parameter_kind(scalar.dtype) for scalar in problem.scalars
        }
        self._known = names.translations(self._scalars)
        self._constants: list[tuple[str, Translation, Kind]] = []
        for name, value in self._plan.constants.items():
            translation = (
                literal(value)
                if not isinstance(value, str)
                else translate(Expression.parse(value), self._known)
            )
            self._constants.append((name, translation, translation.kind))
            self._known |= names.translations({name: translation.kind})

    def parameters(self) -> list[str]:
        """The parameters of ``launch``."""
        names, problem = self._names, self._problem
        pointers = [
            f"{'const ' if buffer.role == 'input' else ''}{pointer_type(buffer.dtype)}* {names[buffer.name]}"
            for buffer in problem.buffers
        ]
        scalars = [f"{parameter_type(scalar.dtype)} {names[scalar.name]}" for scalar in problem.scalars]
        workspace = ["void* workspace"] if self._plan.scratch else []
        return [*pointers, *scalars, *workspace, "hipStream_t stream"]

    def lines(self) -> list[str]:
        """The functions, those that a user calls last."""
        return [*self._plan_function(), "", *self._workspace_function(), *self._launch_function()]

    def _plan_function(self) -> list[str]:
        problem, names = self._problem, self._names
        pointers = [f"const void* {names[buffer.name]}" for buffer in problem.buffers]
        body = [
            *self._domain_check(),
            *self._constant_lines(),
            *self._choice_lines(),
            *self._scratch_lines(),
            "  hipError_t status = hipSuccess;",
        ]
        for index, launch in enumerate(self._plan.launches):
            body += self._launch_lines(index, launch)
        parameters = ", ".join([*pointers, *self._typed_scalars(), "void* workspace", "hipStream_t stream"])
        unused = "" if self._plan.scratch else "  (void)workspace;"
        return [
            f"inline hipError_t launch_plan({parameters}) {{",
            *([unused] if unused else []),
            *body,
            "  return status;",
            "}",
        ]

    def _typed_scalars(self) -> list[str]:
        types = {"integer": "Integer", "real": "double"}
        return [f"{types[kind]} {self._names[name]}" for name, kind in self._scalars.items()]

    def _domain_check(self) -> list[str]:
        tests: list[str] = []
        for name, bounds in self._problem.domain.items():
            own = self._names[name]
            tests.append(f"{own} >= {bounds.min} && {own} <= {bounds.max}")
            if bounds.multiple_of > 1:
                tests.append(f"modulo({own}, {bounds.multiple_of}) == 0")
        return [f"  if (!({' && '.join(tests)})) return hipErrorInvalidValue;"]

    def _constant_lines(self) -> Iterator[str]:
        types = {"integer": "Integer", "real": "double"}
        for name, translation, kind in self._constants:
            yield f"  [[maybe_unused]] const {types[kind]} {self._names[name]} = {translation.typed(kind)};"

    def _choice_lines(self) -> list[str]:
        """Which build has the constants that this shape asks for."""
        if len(self._variants) == 1 and not self._shaped():
            return []
        lines = ["  int variant = -1;"]
        for index, variant in enumerate(self._variants):
            tests = [
                f"{self._names[name]} == {literal(variant.values[place]).typed(kind)}"
                for place, (name, _, kind) in enumerate(self._constants)
                if name in self._shaped()
            ]
            lines.append(f"  if ({' && '.join(tests)}) variant = {index};")
        return [*lines, "  if (variant < 0) return hipErrorInvalidValue;  // constants of no build above"]

    def _shaped(self) -> set[str]:
        """The constants whose values may depend on the shape."""
        return {name for name, value in self._plan.constants.items() if isinstance(value, str)}

    def _scratch_lines(self) -> Iterator[str]:
        if not self._plan.scratch:
            return
        yield "  char* memory = static_cast<char*>(workspace);"
        for scratch in self._plan.scratch:
            name = self._names[scratch.name]
            size = translate(scratch.size, self._known)
            yield f"  void* const {name} = memory;"
            yield f"  const Integer elements_of_{name} = {size.integer};"
            yield f"  if (!(elements_of_{name} >= 1)) return hipErrorInvalidValue;"
            yield f"  memory += padded(elements_of_{name} * {itemsize(scratch.dtype)}).value;"
            if scratch.init is not None:
                yield f"  if (const hipError_t failed = {_fill(scratch, name)}) return failed;"

    def _launch_lines(self, index: int, launch: Launch) -> list[str]:
        known = {**self._known, "step": Translation("step_", "integer", "atom")}
        pointers = {
            name: self._names[name]
            for name in (
                *(buffer.name for buffer in self._problem.buffers),
                *(scratch.name for scratch in self._plan.scratch),
            )
        }
        arguments = [self._argument(expression, known, pointers) for expression in launch.args]
        grid, block = (self._extents(one, known) for one in (launch.grid, launch.block))
        body = [
            "dim3 grid, block;",
            f"if (!extents(grid, {grid}, {_MOST_GRID_X}, {_MOST_GRID}) ||",
            f"    !extents(block, {block}, {_MOST_BLOCK}, {_MOST_BLOCK}) ||",
            f"    block.x * block.y * block.z > {_MOST_BLOCK}) return hipErrorInvalidValue;",
            f"const Integer lds = {translate(launch.lds, known).integer};",
            *self._starts(index, arguments),
            "if (status != hipSuccess) return status;",
        ]
        return [f"  {line}" for line in _guarded(launch, known, body)]

    def _argument(
        self, expression: Expression, known: Mapping[str, Translation], pointers: Mapping[str, str]
    ) -> str:
        name = expression.name()
        if name is not None and name in pointers:
            return pointers[name]
        translation = translate(expression, known)
        return translation.typed(translation.kind)

    def _extents(self, expressions: Sequence[Expression], known: Mapping[str, Translation]) -> str:
        written = [translate(expression, known).integer for expression in expressions]
        return ", ".join([*written, "1", "1"][:3])

    def _starts(self, index: int, arguments: Sequence[str]) -> list[str]:
        """The call of the kernel in the chosen build; those that never make it have no such kernel."""
        having = [number for number, one in enumerate(self._variants) if index in one.launches]
        passed = "".join(f", {argument}" for argument in arguments)

        def start(number: int) -> str:
            kernel = f"{variant_name(number)}::ks_kernel_{index}()"
            return f"status = start({kernel}, grid, block, lds, stream{passed});"

        if len(self._variants) == 1 and not self._shaped():
            return [start(0)] if having else ["return hipErrorInvalidValue;"]
        cases = [f"  case {number}: {start(number)} break;" for number in having]
        return ["switch (variant) {", *cases, "  default: return hipErrorInvalidValue;", "}"]

    def _workspace_function(self) -> list[str]:
        if not self._plan.scratch:
            return []
        total = " + ".join(
            f"padded(({translate(scratch.size, self._known).integer}) * {itemsize(scratch.dtype)})"
            for scratch in self._plan.scratch
        )
        typed, plain, passed = self._typed_scalars(), self._plain_scalars(), self._scalar_names()
        return [
            f"inline Integer plan_workspace({', '.join(typed)}) {{",
            *self._constant_lines(),
            f"  return {total};",
            "}",
            "",
            "// Bytes of device memory that `launch` needs beside the buffers; 0 for a shape that has none.",
            f"inline std::size_t workspace_bytes({', '.join(plain)}) {{",
            f"  const Integer bytes = plan_workspace({', '.join(passed)});",
            "  return bytes > 0 ? static_cast<std::size_t>(bytes.value) : 0;",
            "}",
            "",
        ]

    def _plain_scalars(self) -> list[str]:
        return [f"{parameter_type(one.dtype)} {self._names[one.name]}" for one in self._problem.scalars]

    def _scalar_names(self) -> list[str]:
        return [self._names[one.name] for one in self._problem.scalars]

    def _launch_function(self) -> list[str]:
        workspace = "workspace" if self._plan.scratch else "nullptr"
        buffers = [self._names[buffer.name] for buffer in self._problem.buffers]
        passed = [*buffers, *self._scalar_names(), workspace, "stream"]
        needs = "// `workspace` has workspace_bytes() bytes, and is in use until `stream` is done."
        return [
            "// Starts every kernel of the plan on `stream`. Pointers are to device memory; buffers lie as",
            "// described above. hipErrorInvalidValue: the shape is outside of the domain, or of no build.",
            *([needs] if self._plan.scratch else []),
            f"inline hipError_t launch({', '.join(self.parameters())}) {{",
            f"  return launch_plan({', '.join(passed)});",
            "}",
        ]


def _guarded(launch: Launch, known: Mapping[str, Translation], body: Sequence[str]) -> list[str]:
    """The body under its `when`, once per `step`."""
    lines = list(body)
    if launch.repeat.text.strip() != "1":
        repeat = translate(launch.repeat, known).integer
        lines = [
            f"const Integer repeat = {repeat};",
            f"if (!(repeat >= 0 && repeat <= {_MOST_LAUNCHES})) return hipErrorInvalidValue;",
            "for (Integer step_ = 0; step_ < repeat; step_ = step_ + 1) {",
            *(f"  {line}" for line in lines),
            "}",
        ]
    when = f"if ({translate(launch.when, known).condition}) " if launch.when is not None else ""
    return [f"{when}{{", *(f"  {line}" for line in lines), "}"]


def _fill(scratch: Scratch, name: str) -> str:
    size = itemsize(scratch.dtype)
    assert scratch.init is not None
    pattern = np.array(scratch.init).astype(numpy_dtype(scratch.dtype)).tobytes()
    word = int.from_bytes(pattern, "little")
    elements = f"static_cast<std::size_t>(elements_of_{name}.value)"
    return f"fill<{_WORDS[size]}>({name}, {elements}, {word:#x}ull, stream)"
