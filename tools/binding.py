"""A plan bound to a problem and a shape: numbers, buffers and entry points, with every limit checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernel_scientist.sandbox.compilation import BufferArgument, EntryPoint, ScalarArgument

from .dtypes import is_float, itemsize
from .errors import ExpressionError, PlanError, nearest
from .expressions import Expression, Number
from .kernel import Kernel
from .plan import Launch, Plan
from .problem import Problem, Scalar

__all__ = ["BoundLaunch", "BoundPlan", "ScratchBuffer", "bind"]

# Limits of gfx942 (HIP's hipDeviceProp_t on MI300); a plan that keeps them runs on every target.
MAX_BLOCK_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_GRID_THREADS = 2**32 - 1
MAX_LDS_BYTES = 65536
# Ours: more launches than this is a plan gone wrong, and so is more scratch.
MAX_LAUNCHES = 4096
MAX_SCRATCH_BYTES = 16 * 2**30


@dataclass(frozen=True, slots=True)
class ScratchBuffer:
    """A scratch buffer of one run; `init` is the value it is filled with inside the timed run."""

    name: str
    dtype: str
    elements: int
    init: Number | None

    @property
    def nbytes(self) -> int:
        return self.elements * itemsize(self.dtype)


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch with numbers; `kernel` is an index into the entries, a string argument names a buffer."""

    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    arguments: tuple[str | Number, ...]


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """What to compile (`entries`, `constants` as ``-D`` macros) and what to launch, in order."""

    entries: tuple[EntryPoint, ...]
    constants: tuple[tuple[str, str], ...]
    scratch: tuple[ScratchBuffer, ...]
    launches: tuple[BoundLaunch, ...]


def bind(kernel: Kernel, problem: Problem, shape: Mapping[str, int]) -> BoundPlan:
    """Evaluate the kernel's plan for one shape; PlanError with the line in the kernel file."""
    try:
        return _Binder(kernel.plan, problem, shape).bind()
    except PlanError as error:
        raise PlanError(error.message, line=error.line, path=kernel.path) from None


def _macro(value: Number) -> str:
    """`value` as a macro's text; parenthesised when negative, so that ``x-NAME`` stays a subtraction."""
    return f"({value!r})" if value < 0 else repr(value)


class _Binder:
    def __init__(self, plan: Plan, problem: Problem, shape: Mapping[str, int]) -> None:
        self._plan = plan
        self._problem = problem
        self._scalars = {scalar.name: scalar for scalar in problem.scalars}
        self._names: dict[str, Number] = dict(problem.scalar_values(shape))
        self._buffers: dict[str, BufferArgument] = {
            buffer.name: BufferArgument(buffer.name, buffer.dtype, buffer.role == "output")
            for buffer in problem.buffers
        }
        self._entries: dict[tuple[str, ...], EntryPoint] = {}

    def bind(self) -> BoundPlan:
        constants = self._bind_constants()
        scratch = self._bind_scratch()
        launches = [bound for launch in self._plan.launches for bound in self._bind_launch(launch)]
        self._check_coverage(launches)
        return BoundPlan(tuple(self._entries.values()), constants, scratch, tuple(launches))

    def _bind_constants(self) -> tuple[tuple[str, str], ...]:
        bound: list[tuple[str, str]] = []
        for name, value in self._plan.constants.items():
            line = self._plan.constant_lines[name]
            if name in self._names or name in self._buffers:
                raise PlanError(f"constant '{name}' has the name of a scalar or buffer", line=line)
            number = self._evaluate(Expression.parse(value), self._names, line)
            self._names[name] = number
            bound.append((name, _macro(number)))
        return tuple(bound)

    def _bind_scratch(self) -> tuple[ScratchBuffer, ...]:
        bound: list[ScratchBuffer] = []
        for item in self._plan.scratch:
            if item.name in self._names or item.name in self._buffers:
                raise PlanError(f"scratch '{item.name}' has a name that is already taken", line=item.line)
            elements = self._integer(item.size, self._names, item.line, f"size of '{item.name}'")
            if elements < 1:
                raise PlanError(f"scratch '{item.name}' has {elements} elements; give it one", line=item.line)
            if item.init is not None and not is_float(item.dtype) and not isinstance(item.init, int):
                message = f"scratch '{item.name}' of {item.dtype} cannot start as {item.init!r}"
                raise PlanError(message, line=item.line)
            buffer = ScratchBuffer(item.name, item.dtype, elements, item.init)
            bound.append(buffer)
            self._buffers[item.name] = BufferArgument(item.name, item.dtype, True)
            if sum(one.nbytes for one in bound) > MAX_SCRATCH_BYTES:
                raise PlanError(f"scratch up to '{item.name}' is over 16 GiB; use less", line=item.line)
        return tuple(bound)

    def _bind_launch(self, launch: Launch) -> list[BoundLaunch]:
        if launch.when is not None and not self._evaluate(launch.when, self._names, launch.line):
            return []
        repeat = self._integer(launch.repeat, self._names, launch.line, "repeat")
        if not 0 <= repeat <= MAX_LAUNCHES:
            raise PlanError(f"repeat is {repeat}; it may be 0 to {MAX_LAUNCHES}", line=launch.line)
        return [self._bind_step(launch, {**self._names, "step": step}) for step in range(repeat)]

    def _bind_step(self, launch: Launch, names: Mapping[str, Number]) -> BoundLaunch:
        line = launch.line
        block = self._extents(launch.block, names, line, "block")
        threads = prod(block)
        if threads > MAX_BLOCK_THREADS:
            written = " x ".join(str(extent) for extent in block)
            message = f"a block of {threads} threads ({written}) is over the limit of {MAX_BLOCK_THREADS}"
            raise PlanError(message, line=line)
        grid = self._extents(launch.grid, names, line, "grid")
        for axis, extent, most, width in zip("xyz", grid, MAX_GRID, block, strict=True):
            if extent > most or extent * width > MAX_GRID_THREADS:
                raise PlanError(
                    f"the grid has {extent} blocks along {axis}, over the limit of {most}", line=line
                )
        lds = self._integer(launch.lds, names, line, "lds")
        if not 0 <= lds <= MAX_LDS_BYTES:
            raise PlanError(f"lds is {lds} bytes; a block may have 0 to {MAX_LDS_BYTES}", line=line)
        arguments, types = self._arguments(launch, names)
        index = self._entry(launch.kernel, types, threads)
        return BoundLaunch(index, grid, block, lds, arguments)

    def _extents(
        self, expressions: Sequence[Expression], names: Mapping[str, Number], line: int, what: str
    ) -> tuple[int, int, int]:
        extents = [self._integer(item, names, line, what) for item in expressions]
        for expression, extent in zip(expressions, extents, strict=True):
            if extent < 1:
                raise PlanError(f"{what} '{expression.text}' is {extent}; it must be at least 1", line=line)
        x, y, z = (*extents, 1, 1)[:3]
        return x, y, z

    def _arguments(
        self, launch: Launch, names: Mapping[str, Number]
    ) -> tuple[tuple[str | Number, ...], tuple[BufferArgument | ScalarArgument, ...]]:
        values: list[str | Number] = []
        types: list[BufferArgument | ScalarArgument] = []
        for expression in launch.args:
            for name in sorted(expression.names & self._buffers.keys()):
                if expression.name() != name:
                    message = f"'{expression.text}': pass buffer '{name}' whole, and an offset beside it"
                    raise PlanError(message, line=launch.line)
            whole = expression.name()
            if whole is not None and whole in self._buffers:
                values.append(whole)
                types.append(self._buffers[whole])
                continue
            known = {*names, *self._buffers}
            for unknown in sorted(expression.names - known):
                message = f"unknown buffer or scalar '{unknown}' in args; {nearest(unknown, known)}"
                raise PlanError(message, line=launch.line)
            value = self._evaluate(expression, names, launch.line)
            values.append(value)
            types.append(_scalar_argument(expression, value, self._scalars))
        return tuple(values), tuple(types)

    def _entry(self, kernel: str, types: tuple[BufferArgument | ScalarArgument, ...], threads: int) -> int:
        """The entry's index; launches of one kernel with the same types of arguments share an entry.

        Where one launch passes a buffer that may not be written, the shared parameter must be const.
        """
        key = (kernel, *(item.dtype for item in types))
        known = self._entries.get(key)
        arguments = types if known is None else tuple(map(_stricter, known.arguments, types))
        most = threads if known is None else max(threads, known.threads)
        self._entries[key] = EntryPoint(kernel, arguments, most)
        return list(self._entries).index(key)

    def _check_coverage(self, launches: Sequence[BoundLaunch]) -> None:
        line = self._plan.launches[0].line
        if not launches:
            raise PlanError("no launch runs for this shape; check 'when' and 'repeat'", line=line)
        if len(launches) > MAX_LAUNCHES:
            raise PlanError(f"the plan makes {len(launches)} launches, over {MAX_LAUNCHES}", line=line)
        passed = {item for launch in launches for item in launch.arguments if isinstance(item, str)}
        for buffer in self._problem.buffers:
            if buffer.role == "output" and buffer.name not in passed:
                raise PlanError(f"no launch is given the output '{buffer.name}'; add it to args", line=line)

    def _evaluate(self, expression: Expression, names: Mapping[str, Number], line: int) -> Number:
        try:
            return expression.evaluate(names)
        except ExpressionError as error:
            raise PlanError(str(error), line=line) from None

    def _integer(self, expression: Expression, names: Mapping[str, Number], line: int, what: str) -> int:
        try:
            return expression.evaluate_integer(names)
        except ExpressionError as error:
            raise PlanError(f"{what}: {error}", line=line) from None


def _scalar_argument(expression: Expression, value: Number, scalars: Mapping[str, Scalar]) -> ScalarArgument:
    """The declared type for a scalar passed by name; else what the value is."""
    name = expression.name()
    if name is not None and name in scalars:
        return ScalarArgument(expression.text, scalars[name].dtype)
    if isinstance(value, float):
        return ScalarArgument(expression.text, "float32")
    return ScalarArgument(expression.text, "int32" if -(2**31) <= value < 2**31 else "int64")


def _stricter(
    a: BufferArgument | ScalarArgument, b: BufferArgument | ScalarArgument
) -> BufferArgument | ScalarArgument:
    """Of two arguments for one parameter the one that asks more of it."""
    return b if isinstance(a, BufferArgument) and isinstance(b, BufferArgument) and a.writable else a
