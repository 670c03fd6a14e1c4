"""A problem folder proposed from a HIP program: plan, problem.toml and reference.py with marks to fill in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..dtypes import itemsize
from ..kernel import Kernel
from ..marks import MARK
from ..plan import is_constant_name, toml_literal
from ..policy import policy_violation
from .arithmetic import Term
from .device import device_text
from .facts import BufferFacts, Facts, LaunchFacts, collect_facts
from .host import Program

__all__ = ["Proposal", "propose"]

_REFERENCE = re.compile(r"(?:^|_)(?:cpu|host|ref|reference|gold|golden|serial|verify|check)", re.IGNORECASE)
_LARGEST = 2**31 - 1
# What a dimension of unknown size may be, until somebody says.
_LARGEST_UNKNOWN = 65536


@dataclass(frozen=True, slots=True)
class Proposal:
    """The folder's files by name."""

    files: dict[str, str]


def propose(source: bytes, file: Path, name: str) -> Proposal:
    """Read a program and propose a problem; UsageError where it launches nothing."""
    program = Program(source)
    facts = collect_facts(program, str(file))
    names = _Names(program, facts)
    kernel = f"{re.sub(r'[^A-Za-z0-9_-]', '_', file.stem) or 'kernel'}.hip"
    plan = _plan(facts, names)
    nodes = [program.macros[name].node for name in names.constants if name in program.macros]
    text = f"/* plan\n{plan}*/\n{device_text(program.root, nodes)}"
    violation = policy_violation(text)
    if violation is not None:
        text = text.replace("/* plan\n", f"/* plan\n# {MARK} {violation}\n", 1)
    Kernel.parse(text)
    return Proposal(
        {
            "problem.toml": _problem(facts, names, kernel, file, name),
            "reference.py": _reference(program, facts, names, name),
            kernel: text,
        }
    )


class _Names:
    """Which of the program's numbers are dimensions, constants of the plan and scalars."""

    def __init__(self, program: Program, facts: Facts) -> None:
        device = device_text(program.root, [])
        self.dimensions: dict[str, int | None] = {}
        self.constants: dict[str, str] = {}
        self.scalars: dict[str, float | None] = {}
        used = _used_names(facts)
        for name, value in facts.numbers.items():
            if name not in used:
                continue
            if value is not None and value.real:
                self.scalars[name] = float(value.text) if value.text else None
            elif self._is_constant(name, value, program, facts, device):
                assert value is not None
                self.constants[name] = value.text
            else:
                self.dimensions[name] = int(float(value.text)) if value is not None else None
        self.nothing_varies = not self.dimensions
        if self.nothing_varies:
            self.dimensions["unit"] = 1

    def _is_constant(
        self, name: str, value: Term | None, program: Program, facts: Facts, device: str
    ) -> bool:
        if value is None or not is_constant_name(name):
            return False
        in_device = name in program.macros and re.search(rf"(?<!define )\b{name}\b", device) is not None
        return in_device or (name in facts.in_blocks and name not in facts.in_sizes)

    def without_constants(self, text: str) -> str:
        """An expression for problem.toml, which knows no constants of a plan."""
        return re.sub(r"[A-Za-z_]\w*", lambda found: self.constants.get(found[0], found[0]), text)

    def shape(self, most: int) -> str:
        values = {
            name: min(_LARGEST_UNKNOWN if value is None else value, most)
            for name, value in self.dimensions.items()
        }
        return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def _used_names(facts: Facts) -> set[str]:
    """The names in all expressions of the proposal."""
    texts = [text for buffer in facts.buffers.values() for text in buffer.shape]
    for launch in facts.launches:
        texts += [
            *launch.grid,
            *launch.block,
            *launch.args,
            launch.lds or "",
            launch.repeat or "",
            launch.kernel,
        ]
    return set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))


def _marks(marks: Sequence[str]) -> list[str]:
    return [f"# {MARK} {' '.join(mark.split())}" for mark in marks]


def _list(texts: Sequence[str]) -> str:
    return "[" + ", ".join(text if text.isdigit() else toml_literal(text) for text in texts) + "]"


def _plan(facts: Facts, names: _Names) -> str:
    lines = _marks(facts.marks)
    if names.constants:
        lines += ["[constants]", *(f"{name} = {value}" for name, value in names.constants.items()), ""]
    for buffer in facts.buffers.values():
        if buffer.role == "scratch":
            simple = len(buffer.shape) == 1
            size = " * ".join(one if simple or one.isalnum() else f"({one})" for one in buffer.shape)
            lines += [
                *_marks(buffer.marks),
                "[[scratch]]",
                f'name = "{buffer.name}"',
                f'dtype = "{buffer.dtype}"',
                f"size = {toml_literal(size)}",
                *([f"init = {buffer.init}"] if buffer.init is not None else []),
                "",
            ]
    for launch in facts.launches:
        lines += [*_launch(launch), ""]
    return "\n".join(lines)


def _launch(launch: LaunchFacts) -> list[str]:
    return [
        f"# line {launch.line} of the program",
        *_marks(launch.marks),
        "[[launch]]",
        f"kernel = {toml_literal(launch.kernel)}",
        f"grid = {_list(launch.grid)}",
        f"block = {_list(launch.block)}",
        *([f"lds = {toml_literal(launch.lds)}"] if launch.lds is not None else []),
        *([f"repeat = {toml_literal(launch.repeat)}"] if launch.repeat is not None else []),
        f"args = [{', '.join(toml_literal(one) for one in launch.args)}]",
    ]


def _problem(facts: Facts, names: _Names, kernel: str, file: Path, name: str) -> str:
    inputs, outputs = (
        [one for one in facts.buffers.values() if one.role == role] for role in ("input", "output")
    )
    lines = [
        f"title = {toml_literal(name)}",
        f"# {MARK} say what is computed, for people and for models",
        f"description = {toml_literal(f'Proposed from the launches of {file.name}.')}",
        f'kernels = ["{kernel}"]',
        'distributions = ["normal"]',
        "",
        "[inputs]",
        *(line for one in inputs for line in _buffer(one, names)),
        "",
        "[outputs]",
        *(line for one in outputs for line in _buffer(one, names)),
        "",
        *_scalars(names),
        "[domain]                                # what held-out shapes are drawn from",
        *(
            ["# " + MARK + " the program has no size that varies; name one, or leave this as it is"]
            if names.nothing_varies
            else []
        ),
        *(line for name, value in names.dimensions.items() for line in _dimension(name, value)),
        "",
        "[tolerance]",
        f"# {MARK} how far a result may be off: |got - want| <= atol + rtol |want|",
        "rtol = 1e-5",
        "atol = 1e-6",
        "",
        "[speed_of_light]",
        f"# {MARK} the floating-point operations that cannot be avoided, over the dimensions",
        "flops = 0",
        f"bytes = {toml_literal(_bytes([*inputs, *outputs], names))}",
        'arithmetic = "float32"',
        "",
        "[shapes.cpu]                            # the program's sizes, scaled down",
        f"tests = [{names.shape(64)}, {names.shape(37)}]",
        f"benchmarks = [{names.shape(256)}]",
        "",
        "[shapes.mi300]",
        f"tests = [{names.shape(64)}, {names.shape(1000)}]",
        f"benchmarks = [{names.shape(_LARGEST)}]",
    ]
    return "\n".join(lines) + "\n"


def _buffer(buffer: BufferFacts, names: _Names) -> list[str]:
    shape = _list([names.without_constants(one) for one in buffer.shape])
    return [*_marks(buffer.marks), f'{buffer.name} = {{ dtype = "{buffer.dtype}", shape = {shape} }}']


def _scalars(names: _Names) -> list[str]:
    if not names.scalars:
        return []
    lines = ["[scalars]"]
    for name, value in names.scalars.items():
        if value is None:
            lines.append(f"# {MARK} the value of '{name}', which the program takes from elsewhere")
        lines.append(f'{name} = {{ dtype = "float32", value = {1.0 if value is None else value} }}')
    return [*lines, ""]


def _dimension(name: str, value: int | None) -> list[str]:
    unknown = (
        [f"# {MARK} the values of '{name}': the program takes it from elsewhere"] if value is None else []
    )
    return [*unknown, f"{name} = {{ min = 1, max = {_LARGEST_UNKNOWN if value is None else value} }}"]


def _bytes(buffers: Sequence[BufferFacts], names: _Names) -> str:
    parts = [
        " * ".join(
            [str(itemsize(one.dtype)), *(f"({names.without_constants(extent)})" for extent in one.shape)]
        )
        for one in buffers
    ]
    return re.sub(r"\((\w+)\)", r"\1", " + ".join(parts)) or "1"


def _reference(program: Program, facts: Facts, names: _Names, name: str) -> str:
    inputs = [one for one in facts.buffers.values() if one.role == "input"]
    outputs = [one for one in facts.buffers.values() if one.role == "output"]
    found = [
        f"'{name}' (line {node.start_point[0] + 1})"
        for name, node in program.functions.items()
        if _REFERENCE.search(name) and name != "main"
    ]
    hint = f"; {', '.join(found)} of the program may be what to follow" if found else ""
    drawn = [f"    {one.name} = {_draw(one, names)}" for one in inputs]
    returned = ", ".join(f'"{one.name}": {one.name}' for one in inputs)
    wanted = ", ".join(f"'{one.name}'" for one in outputs)
    scalars = [*names.scalars]
    parameters = ", ".join([*(one.name for one in inputs), *names.dimensions, *scalars])
    return "\n".join(
        [
            f'"""Reference for {name}: proposed, and to be written."""',
            "",
            "from __future__ import annotations",
            "",
            "import numpy as np",
            "",
            "",
            f"def inputs(rng, distribution, {', '.join(names.dimensions)}):",
            f"    # {MARK} inputs that show every fault: other sizes, places and signs than these",
            *drawn,
            f"    return {{{returned}}}",
            "",
            "",
            f"def reference({parameters}):",
            f"    # {MARK} compute the expected {wanted} in NumPy, as exactly as can be{hint}",
            f'    raise NotImplementedError("reference() of {name} is still to be written")',
            "",
        ]
    )


def _draw(buffer: BufferFacts, names: _Names) -> str:
    extents = [names.without_constants(one).replace("cdiv", "-(-") for one in buffer.shape]
    shape = "(" + "".join(f"{one}, " for one in extents).rstrip() + ")"
    if buffer.dtype in ("float32", "float64", "float16"):
        return f"rng.standard_normal({shape}).astype(np.{buffer.dtype})"
    if buffer.dtype.startswith(("int", "uint")):
        return f"rng.integers(0, 100, {shape}).astype(np.{buffer.dtype})"
    return f'rng.standard_normal({shape}).astype("{buffer.dtype}")'
