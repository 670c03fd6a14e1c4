"""What a problem is made of: buffers, scalars, ranges of extents, tolerances, lists of shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .dtypes import holds, is_float, itemsize, numpy_dtype
from .expressions import Number
from .formula import Formula
from .reference import Array

__all__ = ["Buffer", "Range", "Scalar", "Shapes", "Tolerance"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A device buffer: `shape` is the logical one, `order` how it lies in memory (F: column-major)."""

    name: str
    dtype: str
    shape: tuple[Formula, ...]
    role: Literal["input", "output"]
    order: Literal["C", "F"] = "C"

    def extent(self, shape: Mapping[str, int]) -> tuple[int, ...]:
        """The logical extents for one shape of the problem."""
        extents = tuple(item.evaluate_integer(shape) for item in self.shape)
        for formula, extent in zip(self.shape, extents, strict=True):
            if extent < 0:
                raise formula.fault(f"'{formula.shown}' is {extent}", shape)
        return extents

    def elements(self, shape: Mapping[str, int]) -> int:
        return math.prod(self.extent(shape))

    def nbytes(self, shape: Mapping[str, int]) -> int:
        return self.elements(shape) * itemsize(self.dtype)

    def pack(self, array: Array) -> Array:
        """The elements of a logical array as one row of bytes (uint8) in memory order."""
        flat = np.asarray(array, dtype=numpy_dtype(self.dtype)).ravel(order=self.order)
        return np.ascontiguousarray(flat).view(np.uint8)

    def view(self, memory: memoryview | Array | bytes, shape: Mapping[str, int]) -> Array:
        """The logical array that lies in `memory` (at least `nbytes` long), without a copy."""
        dtype = numpy_dtype(self.dtype)
        flat = np.frombuffer(memory, dtype=np.uint8, count=self.nbytes(shape)).view(dtype)
        return flat.reshape(self.extent(shape), order=self.order)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number kernels can be given; every dimension is one, of dtype int32."""

    name: str
    dtype: str
    value: Formula

    def evaluate(self, shape: Mapping[str, int]) -> Number:
        """Its value for one shape of the problem; ProblemError when its dtype cannot hold that."""
        value = self.value.evaluate(shape)
        if isinstance(value, float) and value.is_integer() and not is_float(self.dtype):
            value = int(value)
        if not holds(self.dtype, value):
            raise self.value.fault(f"{value!r} does not fit {self.dtype}", shape)
        return value


@dataclass(frozen=True, slots=True)
class Range:
    """The extents a dimension may have: multiples of `multiple_of` from `min` to `max`."""

    min: int
    max: int
    multiple_of: int = 1


@dataclass(frozen=True, slots=True)
class Tolerance:
    """|got - want| <= atol + rtol * |want| + magnitude * M, each an expression over the dimensions.

    M comes from the reference's ``magnitude()``: the size of what was added up to reach an element,
    so that cancellation is judged by what the precision can give.
    """

    rtol: Formula
    atol: Formula
    magnitude: Formula


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of one target class."""

    tests: tuple[Mapping[str, int], ...]
    benchmarks: tuple[Mapping[str, int], ...]
