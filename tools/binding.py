"""A plan bound to a problem and a shape: numbers, buffers and entry points, with every limit checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernel_scientist.sandbox.compilation import BufferArgument, EntryPoint, ScalarArgument

from .dtypes import holds, is_float, itemsize
from .errors import ExpressionError, PlanError, nearest
from .expressions import Expression, Number
from .kernel import Kernel
from .plan import Launch, Plan
from .problem import Problem
from .problem_parts import Scalar
from .text import excerpt

__all__ = ["BoundLaunch", "BoundPlan", "ScratchBuffer", "bind"]

# Limits of gfx942 (HIP's hipDeviceProp_t on MI300); a plan that keeps them runs on every target.
MAX_BLOCK_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_GRID_THREADS = 2**32 - 1
MAX_LDS_BYTES = 65536
# Ours: more launches than this is a plan gone wrong, and so is more scratch. What a target can hold of it may
# be less; its assessor says so.
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


def _line(launch: Launch, key: str) -> int:
    """The line of the key, where it is written on one of its own; else that of its table."""
    return launch.key_lines.get(key, launch.line)


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
        self._check_tune()
        return tuple(bound)

    def _check_tune(self) -> None:
        """A value worth trying may use what the constant itself may: the shape and the constants above it."""
        known = self._names.keys() - self._plan.constants.keys()
        order = list(self._plan.constants)
        above = {name: known | set(order[:index]) for index, name in enumerate(order)}
        for name, values in self._plan.tune.items():
            for value in values:
                expression = Expression.parse(value)
                for unknown in sorted(expression.names - above[name]):
                    message = (
                        f"the value '{expression.shown}' of '{name}' in [tune] uses '{excerpt(unknown)}', "
                        f"no dimension, scalar or constant above it; {nearest(unknown, above[name])}"
                    )
                    raise PlanError(message, line=self._plan.tune_lines.get(name))

    def _bind_scratch(self) -> tuple[ScratchBuffer, ...]:
        bound: list[ScratchBuffer] = []
        for item in self._plan.scratch:
            lines = item.key_lines
            if item.name in self._names or item.name in self._buffers:
                message = f"scratch '{item.name}' has a name that is already taken"
                raise PlanError(message, line=lines.get("name"))
            size_line = lines.get("size", item.line)
            elements = self._integer(item.size, self._names, size_line, f"size of '{item.name}'")
            if elements < 1:
                message = f"scratch '{item.name}' has {elements} elements; give it one"
                raise PlanError(message, line=size_line)
            if item.init is not None and not holds(item.dtype, item.init):
                message = f"scratch '{item.name}' of {item.dtype} cannot start as {item.init!r}"
                if not is_float(item.dtype):
                    message += "; write an integer that the dtype can hold"
                raise PlanError(message, line=lines.get("init"))
            buffer = ScratchBuffer(item.name, item.dtype, elements, item.init)
            bound.append(buffer)
            self._buffers[item.name] = BufferArgument(item.name, item.dtype, True)
            if sum(one.nbytes for one in bound) > MAX_SCRATCH_BYTES:
                raise PlanError(f"scratch up to '{item.name}' is over 16 GiB; use less", line=size_line)
        return tuple(bound)

    def _bind_launch(self, launch: Launch) -> list[BoundLaunch]:
        when_line, repeat_line = _line(launch, "when"), _line(launch, "repeat")
        if launch.when is not None and not self._evaluate(launch.when, self._names, when_line):
            return []
        repeat = self._integer(launch.repeat, self._names, repeat_line, "repeat")
        if not 0 <= repeat <= MAX_LAUNCHES:
            raise PlanError(f"repeat is {repeat}; it may be 0 to {MAX_LAUNCHES}", line=repeat_line)
        return [self._bind_step(launch, {**self._names, "step": step}) for step in range(repeat)]

    def _bind_step(self, launch: Launch, names: Mapping[str, Number]) -> BoundLaunch:
        block = self._extents(launch.block, names, _line(launch, "block"), "block")
        threads = prod(block)
        if threads > MAX_BLOCK_THREADS:
            written = " x ".join(str(extent) for extent in block)
            message = f"a block of {threads} threads ({written}) is over the limit of {MAX_BLOCK_THREADS}"
            raise PlanError(message, line=_line(launch, "block"))
        grid = self._extents(launch.grid, names, _line(launch, "grid"), "grid")
        for axis, extent, most, width in zip("xyz", grid, MAX_GRID, block, strict=True):
            message = f"the grid has {extent} blocks along {axis}"
            if extent > most:
                raise PlanError(f"{message}, over the limit of {most}", line=_line(launch, "grid"))
            if extent * width > MAX_GRID_THREADS:
                message += f", {extent * width} threads, over the limit of {MAX_GRID_THREADS} threads"
                raise PlanError(message, line=_line(launch, "grid"))
        lds = self._integer(launch.lds, names, _line(launch, "lds"), "lds")
        if not 0 <= lds <= MAX_LDS_BYTES:
            message = f"lds is {lds} bytes; a block may have 0 to {MAX_LDS_BYTES}"
            raise PlanError(message, line=_line(launch, "lds"))
        arguments, types = self._arguments(launch, names)
        index = self._entry(launch.kernel, types, threads)
        return BoundLaunch(index, grid, block, lds, arguments)

    def _extents(
        self, expressions: Sequence[Expression], names: Mapping[str, Number], line: int, what: str
    ) -> tuple[int, int, int]:
        extents = [self._integer(item, names, line, what) for item in expressions]
        for expression, extent in zip(expressions, extents, strict=True):
            if extent < 1:
                raise PlanError(f"{what} '{expression.shown}' is {extent}; it must be at least 1", line=line)
        x, y, z = (*extents, 1, 1)[:3]
        return x, y, z

    def _arguments(
        self, launch: Launch, names: Mapping[str, Number]
    ) -> tuple[tuple[str | Number, ...], tuple[BufferArgument | ScalarArgument, ...]]:
        line = _line(launch, "args")
        values: list[str | Number] = []
        types: list[BufferArgument | ScalarArgument] = []
        for expression in launch.args:
            for name in sorted(expression.names & self._buffers.keys()):
                if expression.name() != name:
                    message = f"'{expression.shown}': pass buffer '{name}' whole, and an offset beside it"
                    raise PlanError(message, line=line)
            whole = expression.name()
            if whole is not None and whole in self._buffers:
                values.append(whole)
                types.append(self._buffers[whole])
                continue
            known = {*names, *self._buffers}
            for unknown in sorted(expression.names - known):
                message = f"unknown buffer or scalar '{excerpt(unknown)}' in args; {nearest(unknown, known)}"
                raise PlanError(message, line=line)
            value = self._evaluate(expression, names, line)
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
