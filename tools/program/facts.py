"""What a program's launches say about a plan and a problem; what they do not say is a mark for its author."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kernel_scientist.sandbox.errors import UsageError

from ..dtypes import itemsize
from .arithmetic import DTYPE_OF, Term, Unknown, safe_name
from .host import LaunchSite, Program, Scope, Variable
from .syntax import children, descendants, line_of_node, text_of, try_text
from .syntax import field as part

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["BufferFacts", "Facts", "LaunchFacts", "collect_facts"]

_ALLOCATORS = ("hipMalloc", "hipMallocManaged", "hipMallocAsync", "hipHostMalloc", "hipExtMallocWithFlags")
_COPIES = ("hipMemcpy", "hipMemcpyAsync", "hipMemcpyHtoD", "hipMemcpyDtoH")
_LIBRARIES = re.compile(
    r"\b(?:(?:hip|roc)(?:blas|fft|sparse|rand|solver|prim)\w*|hipcub::Device\w+|thrust::\w+)(?=\s*[(<:])"
)
_SYMBOL = ("hipMemcpyToSymbol", "hipMemcpyToSymbolAsync")


@dataclass(slots=True)
class BufferFacts:
    """A device buffer. `shape` is in elements; `marks` say what of it could not be told."""

    name: str
    dtype: str
    shape: list[str] = field(default_factory=lambda: ["1"])
    role: Literal["input", "output", "scratch"] = "scratch"
    init: int | None = None
    written: bool = False
    marks: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class LaunchFacts:
    """One launch of the plan."""

    kernel: str
    line: int
    grid: list[str]
    block: list[str]
    lds: str | None = None
    repeat: str | None = None
    args: list[str] = field(default_factory=list[str])
    marks: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Facts:
    """All of it. `numbers` are the names that values go back to; `in_blocks` those that block sizes use."""

    launches: list[LaunchFacts]
    buffers: dict[Variable, BufferFacts]
    numbers: dict[str, Term | None]
    in_blocks: set[str]
    in_sizes: set[str]
    marks: list[str]


def collect_facts(program: Program, file: str) -> Facts:
    """Read the program's host code; UsageError where it launches no kernel of its own."""
    sites = program.launches()
    if not sites:
        raise UsageError(
            f"{file}: launches no kernel; give the file with the launches, '<<<...>>>' or hipLaunchKernelGGL"
        )
    reader = _Reader(program)
    launches = [reader.launch(site) for site in sites]
    reader.sizes()
    reader.roles()
    return Facts(
        _once(launches),
        reader.buffers,
        program.roots,
        reader.in_blocks,
        reader.in_sizes,
        [*reader.marks, *_elsewhere(program)],
    )


def _once(launches: list[LaunchFacts]) -> list[LaunchFacts]:
    """Without launches that repeat the one before: warm-up, then the timed loop."""
    kept: list[LaunchFacts] = []
    for launch in launches:
        if kept and (kept[-1].kernel, kept[-1].args, kept[-1].grid) == (
            launch.kernel,
            launch.args,
            launch.grid,
        ):
            again = f"the same launch stands again in line {launch.line} of the program: only once here"
            kept[-1].marks.append(f"{again}; set repeat if that is part of the computation")
            continue
        kept.append(launch)
    return kept


def _elsewhere(program: Program) -> Iterator[str]:
    """What else works on the data: libraries, and copies into symbols."""
    for function in program.functions.values():
        for name in dict.fromkeys(_LIBRARIES.findall(text_of(function))):
            yield f"the program also calls {name}, no kernel of its own; write one that does its part"
    for _, arguments, _ in program.calls(*_SYMBOL):
        target = text_of(arguments[0]) if arguments else "a symbol"
        yield f"the program copies data to {target}, which no plan can do; give the kernel a buffer instead"


class _Reader:
    def __init__(self, program: Program) -> None:
        self._program = program
        self.buffers: dict[Variable, BufferFacts] = {}
        self.in_blocks: set[str] = set()
        self.in_sizes: set[str] = set()
        self.marks: list[str] = []

    def launch(self, site: LaunchSite) -> LaunchFacts:
        facts = LaunchFacts(site.written, site.line, [], [])
        known = self._loops(site, facts)
        facts.grid = self._extents(site.grid, site, known, facts, "grid")
        facts.block = self._extents(site.block, site, known, facts, "block")
        for text in facts.block:
            self.in_blocks |= set(re.findall(r"[A-Za-z_]\w*", text))
        if site.lds is not None and text_of(site.lds) not in ("0", "NULL", "nullptr"):
            facts.lds = self._term(site.lds, site.scope, known, facts, "dynamic LDS", "0")
        if site.kernel not in self._program.kernels:
            facts.marks.append(f"kernel '{site.kernel}' is not defined in this file; add its code below")
        elif self._program.kernels[site.kernel].template and "<" not in site.written:
            facts.marks.append(
                f"'{site.kernel}' is a template; write its arguments, such as {site.kernel}<float>"
            )
        facts.args = [
            self._argument(index, node, site, known, facts) for index, node in enumerate(site.arguments)
        ]
        return facts

    def _loops(self, site: LaunchSite, facts: LaunchFacts) -> dict[str, Term]:
        """The launch's own loop becomes `repeat` where it counts up from 0 and the launch depends on it."""
        if not site.loops:
            return {}
        loop = site.loops[0]
        counted = _counted(loop)
        used = {text_of(one) for node in site.arguments for one in descendants(node, "identifier")}
        where = f"the program launches it in a loop (line {line_of_node(loop)})"
        others = len(list(descendants(loop, "kernel_call_syntax")))
        if counted is None or counted[0] not in used or len(site.loops) > 1 or others > 1 or _swaps(loop):
            swapped = ", and its buffers change places between rounds" if _swaps(loop) else ""
            facts.marks.append(
                f"{where}{swapped}; here it is launched once: where the loop is part of the computation, set "
                "repeat, with `step` to count, or write the launches out"
            )
            return {counted[0]: Term("0")} if counted is not None else {}
        try:
            facts.repeat = self._program.translator(site.scope).term(counted[1]).text
        except Unknown as reason:
            facts.repeat = "1"
            facts.marks.append(f"{where}, how often cannot be told: {reason}; set repeat")
        return {counted[0]: Term("step")}

    def _extents(
        self, node: Node | None, site: LaunchSite, known: Mapping[str, Term], facts: LaunchFacts, what: str
    ) -> list[str]:
        found = self._program.extents(node, site.scope)
        if not found:
            facts.marks.append(f"the {what} of this launch cannot be told from the program; write it")
            return ["1"]
        texts = [self._term(one, scope, known, facts, f"the {what}", "1") for one, scope in found[:3]]
        while len(texts) > 1 and texts[-1] == "1":
            texts.pop()
        return texts

    def _term(
        self,
        node: Node,
        scope: Scope,
        known: Mapping[str, Term],
        facts: LaunchFacts,
        what: str,
        otherwise: str,
    ) -> str:
        try:
            return self._program.translator(scope, known).term(node).text
        except Unknown as reason:
            facts.marks.append(
                f"{what} cannot be told from the program ({reason}); write it in place of {otherwise}"
            )
            return otherwise

    def _argument(
        self, index: int, node: Node, site: LaunchSite, known: Mapping[str, Term], facts: LaunchFacts
    ) -> str:
        kernel = self._program.kernels.get(site.kernel)
        parameter = (
            kernel.parameters[index] if kernel is not None and index < len(kernel.parameters) else None
        )
        what = f"argument {index + 1} ('{parameter.name if parameter is not None else text_of(node)[:30]}')"
        if parameter is not None and parameter.pointer:
            return self._pointer(node, site, parameter.type, parameter.const, facts, what)
        if parameter is None and node.type == "identifier" and self._is_pointer(node, site):
            return self._pointer(node, site, "float", False, facts, what)
        return self._term(node, site.scope, known, facts, what, "1")

    def _is_pointer(self, node: Node, site: LaunchSite) -> bool:
        variable = self._program.variable(node, site.scope)
        return any(one.name == variable.name for one in self.buffers) or variable.name.startswith("d_")

    def _pointer(
        self, node: Node, site: LaunchSite, kind: str, const: bool, facts: LaunchFacts, what: str
    ) -> str:
        base = node
        if node.type == "binary_expression" and part(node, "left") is not None:
            base = part(node, "left") or node
            facts.marks.append(
                f"{what} is '{text_of(node)}': a plan passes whole buffers; give the kernel an offset"
            )
        try:
            variable = self._program.variable(base, site.scope)
        except Unknown as reason:
            facts.marks.append(
                f"{what} is no buffer that can be told ({reason}); write the buffer in place of 0"
            )
            return "0"
        buffer = self.buffers.get(variable) or self._new_buffer(variable, kind)
        buffer.written |= not const
        return buffer.name

    def _new_buffer(self, variable: Variable, kind: str) -> BufferFacts:
        declared = self._program.element_type(variable) or ""
        dtype = next((DTYPE_OF[one] for one in (declared, kind) if one in DTYPE_OF), None)
        name = re.sub(
            r"^(?:d|dev|device|gpu)_(?=[A-Za-z])|(?<=\w)_(?:d|dev|device|gpu)$", "", variable.name
        ).strip("_")
        taken = {one.name for one in self.buffers.values()}
        name = safe_name(name or "buffer")
        while name in taken:
            name += "_"
        buffer = BufferFacts(name, dtype or "float32")
        if dtype is None:
            buffer.marks.append(
                f"the element type of '{name}' ({declared or kind or 'unknown'}) is no dtype; choose one"
            )
        self.buffers[variable] = buffer
        return buffer

    def sizes(self) -> None:
        """Elements of every buffer, from what is allocated for it."""
        known: set[Variable] = set()
        for _, arguments, scope in self._program.calls(*_ALLOCATORS):
            if len(arguments) < 2:
                continue
            try:
                variable = self._program.variable(arguments[0], scope)
            except Unknown:
                continue
            buffer = self.buffers.get(variable)
            if buffer is None:
                continue
            known.add(variable)
            try:
                text = self._program.translator(scope).term(arguments[1]).text
            except Unknown as reason:
                buffer.marks.append(f"the size of '{buffer.name}' cannot be told ({reason}); write its shape")
                continue
            buffer.shape = _extents_of(text, itemsize(buffer.dtype))
            self.in_sizes |= set(re.findall(r"[A-Za-z_]\w*", text))
        for variable, buffer in self.buffers.items():
            if variable not in known and not any("size" in mark for mark in buffer.marks):
                buffer.marks.append(f"where '{buffer.name}' is allocated cannot be told; write its shape")

    def roles(self) -> None:
        """Inputs are copied to the device, outputs back; what is neither is scratch."""
        to_device, to_host = self._copied()
        for variable, buffer in self.buffers.items():
            if variable in to_host:
                buffer.role = "output"
                if variable in to_device:
                    buffer.marks.append(
                        f"'{buffer.name}' is copied to the device and back: a buffer here is input or "
                        "output, so have the kernel read one buffer and write another"
                    )
            elif variable in to_device or not buffer.written:
                buffer.role = "input"
                if buffer.written:
                    buffer.marks.append(
                        f"a kernel takes '{buffer.name}' without const, and inputs cannot be written: make "
                        "sure that it is only read, or copy it into scratch first"
                    )
        self._fills()
        if self.buffers and not any(one.role == "output" for one in self.buffers.values()):
            last = [one for one in self.buffers.values() if one.written] or list(self.buffers.values())
            last[-1].role = "output"
            last[-1].marks.append(
                f"the program copies no result back; '{last[-1].name}' is taken for the output: is it?"
            )

    def _copied(self) -> tuple[set[Variable], set[Variable]]:
        to_device: set[Variable] = set()
        to_host: set[Variable] = set()
        for node, arguments, scope in self._program.calls(*_COPIES):
            text = text_of(node)
            for place, found, marks in (
                (0, to_device, ("HostToDevice", "HtoD")),
                (1, to_host, ("DeviceToHost", "DtoH")),
            ):
                explicit = any(mark in text for mark in marks)
                if len(arguments) > place and (explicit or "hipMemcpyDefault" in text):
                    try:
                        found.add(self._program.variable(arguments[place], scope))
                    except Unknown:
                        continue
            if "DeviceToDevice" in text:
                self.marks.append(
                    f"line {line_of_node(node)} of the program copies between device buffers, which a plan "
                    "does by a kernel: write one"
                )
        return to_device, to_host

    def _fills(self) -> None:
        for node, arguments, scope in self._program.calls("hipMemset", "hipMemsetAsync"):
            try:
                buffer = self.buffers.get(self._program.variable(arguments[0], scope)) if arguments else None
            except Unknown:
                continue
            if buffer is None:
                continue
            if buffer.role == "scratch" and len(arguments) > 1 and text_of(arguments[1]) == "0":
                buffer.init = 0
            else:
                buffer.marks.append(
                    f"line {line_of_node(node)} of the program fills '{buffer.name}', and outputs start as "
                    "garbage here: have a kernel fill it"
                )


def _extents_of(text: str, size: int) -> list[str]:
    """A size in bytes as extents in elements."""
    if text.isdigit():
        return [str(max(1, int(text) // size))]
    found = re.fullmatch(rf"(.+) \* {size}", text) or re.fullmatch(rf"{size} \* (.+)", text)
    if size == 1:
        elements = text
    elif found:
        elements = found[1]
    else:
        # sizeof in the middle of a product.
        factors = text.split(" * ")
        if str(size) in factors and re.fullmatch(r"\w+(?: \* \w+)*", text):
            factors.remove(str(size))
            elements = " * ".join(factors)
        else:
            elements = f"({text}) // {size}"
    return elements.split(" * ") if re.fullmatch(r"\w+(?: \* \w+){1,3}", elements) else [elements]


def _counted(loop: Node) -> tuple[str, Node] | None:
    """The counter and the end of ``for (int i = 0; i < end; ++i)``."""
    if loop.type != "for_statement":
        return None
    start, condition, update = (part(loop, name) for name in ("initializer", "condition", "update"))
    if start is None or condition is None or update is None or condition.type != "binary_expression":
        return None
    inits = list(descendants(start, "init_declarator", "assignment_expression"))
    name = try_text(part(condition, "left"))
    right = part(condition, "right")
    begins = [try_text(part(one, "value") or part(one, "right")) for one in inits]
    steps = "".join(text_of(update).split())
    counts = steps in (f"{name}++", f"++{name}", f"{name}+=1")
    if begins == ["0"] and try_text(part(condition, "operator")) == "<" and counts and right is not None:
        return name, right
    return None


def _swaps(loop: Node) -> bool:
    """Whether buffers change their names from round to round."""
    return bool(re.search(r"\bswap\b", text_of(loop))) or any(
        "*" in text_of(one)
        for one in descendants(loop, "declaration")
        for _ in children(one, "init_declarator")
    )
