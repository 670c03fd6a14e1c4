"""Element types of buffers and scalars: their NumPy and HIP names, size and precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .errors import nearest

__all__ = ["DTYPES", "ElementType", "element_type", "epsilon", "holds", "is_float", "itemsize", "numpy_dtype"]


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type. `epsilon` is the gap between 1 and the next value, 0 for integers.

    `hip` is the type the element has in device code; eight-bit floats may also be read as bytes.
    """

    name: str
    hip: str
    itemsize: int
    epsilon: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.epsilon > 0.0


# fp8 here is the FNUZ kind that gfx942 computes with, not the OCP kind.
_TYPES = (
    ElementType("float64", "double", 8, 2.0**-52),
    ElementType("float32", "float", 4, 2.0**-23),
    ElementType("float16", "__half", 2, 2.0**-10),
    ElementType("bfloat16", "__hip_bfloat16", 2, 2.0**-7),
    ElementType("float8_e4m3fnuz", "__hip_fp8_e4m3_fnuz", 1, 2.0**-3),
    ElementType("float8_e5m2fnuz", "__hip_fp8_e5m2_fnuz", 1, 2.0**-2),
    ElementType("int8", "signed char", 1),
    ElementType("int16", "short", 2),
    ElementType("int32", "int", 4),
    ElementType("int64", "long long", 8),
    ElementType("uint8", "unsigned char", 1),
    ElementType("uint16", "unsigned short", 2),
    ElementType("uint32", "unsigned int", 4),
    ElementType("uint64", "unsigned long long", 8),
)
DTYPES = {kind.name: kind for kind in _TYPES}


def element_type(name: str) -> ElementType:
    """The element type called `name`; ValueError names the nearest known one."""
    try:
        return DTYPES[name]
    except KeyError:
        raise ValueError(f"unknown dtype '{name}'; {nearest(name, DTYPES)}") from None


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of that name; ml_dtypes supplies those that NumPy itself lacks."""
    element_type(name)
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extended
    return np.dtype(name)


def holds(name: str, value: int | float) -> bool:
    """Whether an element of that type can be `value`, rounded where it has to be.

    Integer types hold integers of their range; float types hold what does not overflow, and infinities and
    NaN where they have them.
    """
    if not is_float(name):
        bounds = np.iinfo(numpy_dtype(name))
        return isinstance(value, int) and int(bounds.min) <= value <= int(bounds.max)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            stored = float(np.array(float(value)).astype(numpy_dtype(name)))
    except OverflowError:
        return False
    return math.isfinite(stored) if math.isfinite(value) else repr(stored) == repr(float(value))


def itemsize(name: str) -> int:
    """Bytes per element."""
    return element_type(name).itemsize


def epsilon(name: str) -> float:
    """The gap between 1 and the next value; 0 for integers."""
    return element_type(name).epsilon


def is_float(name: str) -> bool:
    return element_type(name).is_float
