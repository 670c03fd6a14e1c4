"""A problem: what to compute, on which shapes, to what accuracy; a folder anyone can write."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from kernel_scientist.sandbox.errors import UsageError

from .dtypes import is_float, numpy_dtype
from .errors import ProblemError, nearest
from .expressions import Expression, Number
from .formula import Formula
from .problem_file import BufferTable, ProblemFile, RangeTable, read_problem_file, shape_fault
from .problem_parts import Buffer, Range, Scalar, Shapes, Tolerance
from .reference import Array, Reference
from .toml_text import line_of

__all__ = ["RECORDED", "Problem", "list_problems"]

# More than any device has.
_MOST_BUFFER_BYTES = 2**38
# All of a problem's files are read for its key.
_MOST_FILE_BYTES = 2**30
# The share, as a power of all elements, that one dimension may have: 4096 of 65536.
_WIDEST = 0.75
# How far, in the logarithm of each extent, a neighbour of a shape may be from it.
_BESIDE = 0.25

BUNDLED = Path(__file__).parent / "problems"
RECORDED = "recorded:"
"""What stands before the file of a recorded search space, in a problem's name as in a target's."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem folder, loaded and checked; reference.py runs only when it is first needed.

    `arithmetic` is the dtype whose peak rate bounds `flops`. `key` is a SHA-256 over the folder's
    files except the kernels. `kernels` maps a name to its file; the first is the default.
    """

    name: str
    title: str
    description: str
    folder: Path
    buffers: tuple[Buffer, ...]
    scalars: tuple[Scalar, ...]
    domain: Mapping[str, Range]
    tolerance: Tolerance
    flops: Formula
    bytes: Formula
    arithmetic: str
    distributions: tuple[str, ...]
    shapes: Mapping[str, Shapes]
    kernels: Mapping[str, Path]
    key: str
    _reference: Reference = field(repr=False, compare=False)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Problem:
        """Load a bundled problem by name or any problem folder by path; ProblemError or UsageError.

        ``recorded:FILE`` is the problem made from a recorded search space.
        """
        folder = _find(name_or_path)
        problem = _build(folder, *read_problem_file(folder / "problem.toml"))
        for shapes in problem.shapes.values():
            for shape in (*shapes.tests, *shapes.benchmarks):
                problem._check_values(shape)
        return problem

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(self.domain)

    @property
    def default_kernel(self) -> Path:
        return next(iter(self.kernels.values()))

    def buffer(self, name: str) -> Buffer:
        """The buffer called `name`; KeyError if there is none."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    def kernel_file(self, name: str | None) -> Path:
        """The file of a starting kernel by name, the default for ``None``; UsageError if unknown."""
        if name is None:
            return self.default_kernel
        if name not in self.kernels:
            raise UsageError(f"problem '{self.name}' has no kernel '{name}'; {nearest(name, self.kernels)}")
        return self.kernels[name]

    def scalar_values(self, shape: Mapping[str, int]) -> dict[str, Number]:
        """Every dimension and scalar with its value for `shape`; ProblemError outside the domain."""
        fault = shape_fault(shape, self.domain)
        if fault is not None:
            raise self._error(fault)
        return {scalar.name: scalar.evaluate(shape) for scalar in self.scalars}

    def inputs(
        self, rng: np.random.Generator, distribution: str, shape: Mapping[str, int]
    ) -> dict[str, Array]:
        """Fresh inputs by name, each of its buffer's dtype and logical extents."""
        wanted = [buffer for buffer in self.buffers if buffer.role == "input"]
        got = self._reference.inputs(rng, distribution, shape)
        arrays = self._reference.check_names("inputs", got, [buffer.name for buffer in wanted])
        return {
            buffer.name: self._reference.check_array(
                "inputs", buffer.name, arrays[buffer.name], buffer.extent(shape), numpy_dtype(buffer.dtype)
            )
            for buffer in wanted
        }

    def reference(self, inputs: Mapping[str, Array], shape: Mapping[str, int]) -> dict[str, Array]:
        """The expected outputs by name: float64 for float buffers (not rounded), else the buffer's dtype."""
        got = self._reference.outputs(inputs, self.scalar_values(shape))
        return self._outputs("reference", got, shape)

    def allowance(
        self, expected: Mapping[str, Array], inputs: Mapping[str, Array], shape: Mapping[str, int]
    ) -> dict[str, Array]:
        """The absolute error each element may have, in float64; 0 for integer outputs."""
        tolerance = self.tolerance
        rtol, atol, factor = (
            float(item.evaluate(shape)) for item in (tolerance.rtol, tolerance.atol, tolerance.magnitude)
        )
        magnitudes: dict[str, Array] = {}
        if factor:
            got = self._reference.magnitudes(inputs, self.scalar_values(shape))
            magnitudes = self._outputs("magnitude", got, shape)
        allowed: dict[str, Array] = {}
        for name, want in expected.items():
            if not is_float(self.buffer(name).dtype):
                allowed[name] = np.zeros(want.shape)
                continue
            allowed[name] = atol + rtol * np.abs(want)
            if factor:
                allowed[name] += factor * np.abs(magnitudes[name])
        return allowed

    def random_shape(self, rng: np.random.Generator, target_class: str, max_elements: int) -> dict[str, int]:
        """A shape from the domain, not among the listed ones where that can be helped.

        Extents are log-uniform; all buffers together hold at most `max_elements`, and no dimension takes
        nearly all of them. The domain's smallest shape is given when none of this can be had.
        """
        listed = self.shapes.get(target_class)
        known = [dict(shape) for shape in (*listed.tests, *listed.benchmarks)] if listed else []
        widest = max_elements if len(self.domain) == 1 else max_elements**_WIDEST
        smallest = {name: _fit(bounds.min, bounds) for name, bounds in self.domain.items()}
        for attempt in range(200):
            # The ceiling comes down over the attempts, so that a large domain still yields a shape.
            ceiling = 0.94**attempt
            shape = {name: _draw(rng, bounds, ceiling) for name, bounds in self.domain.items()}
            elements = sum(buffer.elements(shape) for buffer in self.buffers)
            if elements <= max_elements and max(shape.values()) <= widest and shape not in known:
                return shape
        return smallest

    def neighbour_shape(
        self, rng: np.random.Generator, target_class: str, max_elements: int
    ) -> dict[str, int]:
        """A shape from the domain beside one of the benchmark shapes, of about its size.

        The benchmark shape is drawn from those of at most `max_elements` elements, else it is the smallest.
        """

        def elements(shape: Mapping[str, int]) -> int:
            return sum(buffer.elements(shape) for buffer in self.buffers)

        listed = self.shapes[target_class]
        known = [dict(shape) for shape in (*listed.tests, *listed.benchmarks)]
        near = [shape for shape in listed.benchmarks if elements(shape) <= max_elements]
        base = near[rng.integers(len(near))] if near else min(listed.benchmarks, key=elements)
        shape = dict(base)
        for _ in range(20):
            shape = {
                name: _fit(base[name] * math.exp(rng.uniform(-_BESIDE, _BESIDE)), bounds)
                for name, bounds in self.domain.items()
            }
            if shape not in known:
                break
        return shape

    def _outputs(self, function: str, got: object, shape: Mapping[str, int]) -> dict[str, Array]:
        wanted = [buffer for buffer in self.buffers if buffer.role == "output"]
        arrays = self._reference.check_names(function, got, [buffer.name for buffer in wanted])
        checked: dict[str, Array] = {}
        for buffer in wanted:
            real = is_float(buffer.dtype)
            dtype = None if real else numpy_dtype(buffer.dtype)
            array = self._reference.check_array(
                function, buffer.name, arrays[buffer.name], buffer.extent(shape), dtype
            )
            checked[buffer.name] = array.astype(np.float64) if real else array
        return checked

    def _check_values(self, shape: Mapping[str, int]) -> None:
        """ProblemError when a formula has no usable value for a shape that is listed."""
        self.scalar_values(shape)
        for item in (self.tolerance.rtol, self.tolerance.atol, self.tolerance.magnitude):
            item.evaluate(shape)
        for buffer in self.buffers:
            if buffer.nbytes(shape) > _MOST_BUFFER_BYTES:
                message = f"{buffer.extent(shape)} of {buffer.dtype} are more bytes than any device has"
                raise buffer.shape[0].fault(message, shape)

    def _error(self, message: str) -> ProblemError:
        return ProblemError(message, path=self.folder / "problem.toml")


def list_problems() -> list[str]:
    """The names of the bundled problems."""
    return sorted(path.parent.name for path in BUNDLED.glob("*/problem.toml"))


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, str) and text in list_problems():
        return BUNDLED / text
    if text.startswith(RECORDED):
        from .recorded_problem import recorded_folder

        return recorded_folder(text.removeprefix(RECORDED))
    path = Path(name_or_path)
    folder = path.parent if path.name == "problem.toml" else path
    if (folder / "problem.toml").is_file():
        return folder.resolve()
    if folder.is_dir():
        raise UsageError(f"{folder}: has no problem.toml; write one (docs/problem-format.md shows how)")
    hint = nearest(text, list_problems())
    raise UsageError(f"there is no problem '{text}'; {hint} (or give a folder with a problem.toml)")


def _build(folder: Path, table: ProblemFile, text: str) -> Problem:
    path = folder / "problem.toml"

    def formula(expression: Expression, what: str, *place: str) -> Formula:
        return Formula.at(expression, what, path, line_of(text, place))

    def buffers(role: Literal["input", "output"], tables: Mapping[str, BufferTable]) -> list[Buffer]:
        return [
            Buffer(
                name,
                one.dtype,
                tuple(formula(item, f"shape of '{name}'", f"{role}s", name) for item in one.shape),
                role,
                one.order,
            )
            for name, one in tables.items()
        ]

    for name in table.kernels:
        if not (folder / name).is_file():
            raise ProblemError(f"lists the kernel '{name}', which is not in the folder", path=path)
    dimensions = tuple(
        Scalar(name, "int32", formula(Expression.parse(name), f"dimension '{name}'", "domain", name))
        for name in table.domain
    )
    others = tuple(
        Scalar(name, item.dtype, formula(item.value, f"scalar '{name}'", "scalars", name))
        for name, item in table.scalars.items()
    )
    rtol, atol, magnitude = (
        formula(getattr(table.tolerance, name), f"tolerance.{name}", "tolerance", name)
        for name in ("rtol", "atol", "magnitude")
    )
    speed = table.speed_of_light
    return Problem(
        name=folder.name,
        title=table.title,
        description=table.description.strip(),
        folder=folder,
        buffers=(*buffers("input", table.inputs), *buffers("output", table.outputs)),
        scalars=dimensions + others,
        domain={name: _range(bounds) for name, bounds in table.domain.items()},
        tolerance=Tolerance(rtol, atol, magnitude),
        flops=formula(speed.flops, "speed_of_light.flops", "speed_of_light", "flops"),
        bytes=formula(speed.bytes, "speed_of_light.bytes", "speed_of_light", "bytes"),
        arithmetic=speed.arithmetic,
        distributions=tuple(table.distributions),
        shapes={name: Shapes(tuple(s.tests), tuple(s.benchmarks)) for name, s in table.shapes.items()},
        kernels={Path(name).stem: folder / name for name in table.kernels},
        key=_folder_key(folder),
        _reference=Reference(folder / "reference.py"),
    )


def _range(table: RangeTable) -> Range:
    return Range(table.min, table.max, table.multiple_of)


def _folder_key(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "__pycache__")) for part in parts)
        if path.is_file() and not hidden and path.suffix != ".hip":
            digest.update("/".join(parts).encode() + b"\0")
            size = path.stat().st_size
            if size > _MOST_FILE_BYTES:
                message = f"it has {size} bytes or more, and a problem's file may have {_MOST_FILE_BYTES}"
                raise ProblemError(message, path=path)
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _fit(value: float, bounds: Range) -> int:
    """The nearest allowed extent to `value`."""
    step = bounds.multiple_of
    low = -(-bounds.min // step) * step
    high = bounds.max // step * step
    return min(max(round(value / step) * step, low), high)


def _draw(rng: np.random.Generator, bounds: Range, ceiling: float) -> int:
    span = math.log(bounds.max / bounds.min) * ceiling
    return _fit(bounds.min * math.exp(rng.uniform(0.0, span)), bounds)
