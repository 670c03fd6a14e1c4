"""Whether an output is right, measured against what its element type can give.

The problem says how far each element may be off. Two guards stand round that. The absolute part (atol)
shrinks with the size of the output round the element: where every expected value is far below atol,
zeros do not pass. And over a whole output the root mean square of the error, relative to the output's,
must not exceed what honest arithmetic in the output's type gives, so that a loose rtol does not admit a
lower precision. Nor may it come near the error of an idle answer, one that takes no work: a constant, an
input handed back, the answer to other inputs.

Covered: zeros, constants, copies, NaN and Inf, elements never written, low precision, single wrong elements.
Not covered: an answer that differs from an idle one by less than the output's type can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import epsilon, is_float

__all__ = ["FEW_ELEMENTS", "Expectation", "Mismatch", "poisoned"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Below this many elements a root mean square says nothing, and a lone sum may come out near zero.
FEW_ELEMENTS = 16
_SHARE_OF_SCALE = 1.0 / 16.0
_SINGLE = 2.0**-23
# Largest admissible relative root mean square error. float32: honest long sums stay below 5e-5, float16 or
# tf32 arithmetic starts at 2e-4. float64: float32 arithmetic starts at 2e-8.
_RMS_LIMITS = {"float64": 1e-10, "float32": 1e-4}
# What careful arithmetic reaches: no output is asked to be more exact than this, whatever is known beside it.
_CAREFUL = {"float64": 1e-13, "float32": 2e-6}
# An answer must be so many times nearer than an idle one, where the type can tell the two apart that well.
_NEARER = 8.0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How one output differs: counts of elements, and the worst of them."""

    buffer: str
    elements: int
    wrong: int
    unwritten: int
    not_finite: int
    index: tuple[int, ...]
    expected: float
    got: float
    detail: str = ""

    def sentence(self) -> str:
        """The evidence in one line."""
        where = f"{self.buffer}[{', '.join(map(str, self.index))}]"
        parts = [f"{self.wrong} of {self.elements} elements of '{self.buffer}' are wrong"]
        if self.unwritten:
            # The judge fills the slack round buffers, scratch and LDS with the same bytes.
            source = "memory that nobody wrote: past the end of a buffer, scratch, LDS"
            parts.append(f"{self.unwritten} were never written, or are copies of {source}")
        if self.not_finite:
            parts.append(f"{self.not_finite} are NaN or infinite")
        if self.detail:
            parts.append(self.detail)
        return f"{'; '.join(parts)}; worst {where}: expected {self.expected:.9g}, got {self.got:.9g}"


def poisoned(got: Array, pattern: int) -> npt.NDArray[np.bool_]:
    """Which elements still hold nothing but the byte `pattern`."""
    kind = np.dtype(f"u{got.dtype.itemsize}")
    filled = np.frombuffer(bytes([pattern]) * kind.itemsize, kind)[0]
    result: npt.NDArray[np.bool_] = got.view(kind) == filled
    return result


class Expectation:
    """What one output buffer of one run should hold, ready to be compared with several times."""

    __slots__ = (
        "_careful", "_dtype", "_expected", "_finite", "_limit", "_name", "_raw", "_rms", "_rms_limit"
    )  # fmt: skip

    def __init__(
        self, name: str, dtype: str, expected: Array, allowed: Array, *, rtol: float, atol: float
    ) -> None:
        """`allowed` is the error each element may have: by rtol, by atol, and what the problem adds.

        Integers must be exact, whatever is allowed.
        """
        self._name = name
        self._dtype = dtype
        self._raw = expected
        self._expected = np.asarray(expected, dtype=np.float64)
        self._finite = np.isfinite(self._expected)
        size = np.where(self._finite, np.abs(self._expected), 0.0)
        rest = np.maximum(np.where(self._finite, allowed, 0.0) - atol - rtol * size, 0.0)
        self._limit: Floats = rtol * size + _floor(size, atol, dtype) + rest
        self._rms = _rms(size)
        self._rms_limit = max(_RMS_LIMITS.get(dtype, epsilon(dtype) / 2) * self._rms, _rms(rest))
        self._careful = max(_CAREFUL.get(dtype, epsilon(dtype) / 2) * self._rms, _rms(rest))
        if is_float(dtype) and size.size >= FEW_ELEMENTS and self._finite.any():
            self.outdo(np.full(size.shape, self._expected[self._finite].mean()))

    @property
    def values(self) -> Floats:
        """The expected values."""
        return self._expected

    @property
    def is_loose(self) -> bool:
        """Whether more is allowed than the rounding of careful arithmetic needs."""
        limit = (
            self._rms_limit if self._expected.size >= FEW_ELEMENTS else float(self._limit.max(initial=0.0))
        )
        return is_float(self._dtype) and limit > self._careful

    def outdo(self, *idle: Floats) -> None:
        """Ask for an answer that is clearly nearer than each of these, which take no work.

        An output of few elements is held, element by element, against how far all of `idle` are off
        together: one alone may be right by chance.
        """
        errors = [np.where(self._finite, np.abs(answer - self._expected), 0.0) for answer in idle]
        if self._expected.size >= FEW_ELEMENTS:
            limits = [_rms(error) / _NEARER for error in errors]
            self._rms_limit = min([self._rms_limit, *(limit for limit in limits if limit > self._careful)])
            return
        limit = _rms(np.stack(errors)) / _NEARER
        if limit > self._careful:
            self._limit = np.minimum(self._limit, limit)

    def compare(self, got: Array, pattern: int) -> Mismatch | None:
        """None when `got` is right; `pattern` is the byte the buffer was poisoned with."""
        unwritten = poisoned(got, pattern) & ~poisoned(self._raw_as(got.dtype), pattern)
        values = np.asarray(got, dtype=np.float64)
        if not is_float(self._dtype):
            wrong = got != self._raw
            error = np.abs(values - self._expected)
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                error = np.abs(values - self._expected)
            close = error <= self._limit
            same = (values == self._expected) | (np.isnan(values) & np.isnan(self._expected))
            wrong = np.where(self._finite, ~close, ~same)
        wrong |= unwritten
        if wrong.any():
            return self._mismatch(values, wrong, unwritten, error)
        return self._imprecise(values, error)

    def _raw_as(self, dtype: np.dtype[Any]) -> Array:
        raw: Array = self._raw if self._raw.dtype == dtype else self._raw.astype(dtype)
        return raw

    def _mismatch(
        self, values: Floats, wrong: Array, unwritten: Array, error: Floats, detail: str = ""
    ) -> Mismatch:
        bad = ~np.isfinite(values) & self._finite & wrong
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            excess = np.where(wrong, error / np.maximum(self._limit, np.finfo(np.float64).tiny), -1.0)
        excess = np.where(wrong & ~np.isfinite(excess), np.inf, excess)
        flat = int(np.argmax(excess))
        index = tuple(int(i) for i in np.unravel_index(flat, values.shape))
        return Mismatch(
            buffer=self._name,
            elements=int(values.size),
            wrong=int(np.count_nonzero(wrong)),
            unwritten=int(np.count_nonzero(unwritten)),
            not_finite=int(np.count_nonzero(bad & ~unwritten)),
            index=index,
            expected=float(self._expected[index]),
            got=float(values[index]),
            detail=detail,
        )

    def _imprecise(self, values: Floats, error: Floats) -> Mismatch | None:
        if not is_float(self._dtype) or values.size < FEW_ELEMENTS or self._rms == 0.0:
            return None
        rms = _rms(np.where(self._finite, error, 0.0))
        if rms <= self._rms_limit:
            return None
        detail = (
            f"each is within the tolerance, but the root mean square error, {rms / self._rms:.1e} of the "
            f"output's, exceeds {self._rms_limit / self._rms:.1e}: this is a lower precision than "
            f"{self._dtype} arithmetic gives, or hardly nearer than an answer that takes no work"
        )
        wrong = error >= self._rms_limit
        return self._mismatch(values, wrong, np.zeros_like(wrong), error, detail)


def _rms(values: Floats) -> float:
    """Root mean square, scaled so that the squares neither overflow nor vanish."""
    top = float(values.max(initial=0.0))
    return top * float(np.sqrt(np.mean(np.square(values / top)))) if top > 0.0 else 0.0


def _floor(size: Floats, atol: float, dtype: str) -> Floats | float:
    """The absolute part of the tolerance for elements of these magnitudes."""
    top = float(size.max(initial=0.0))
    if not is_float(dtype) or size.size < FEW_ELEMENTS or top == 0.0:
        return atol
    # Cancellation leaves errors of the size of single precision's rounding of the largest terms.
    least = top * 8 * min(_SINGLE, epsilon(dtype))
    # A denormal's neighbours are a fixed distance apart, which no relative measure can see.
    least = max(least, 4 * _smallest(dtype))
    floor: Floats = np.minimum(atol, np.maximum(_SHARE_OF_SCALE * _local_scale(size), least))
    return floor


def _smallest(dtype: str) -> float:
    """The smallest positive value of the type, and at least single precision's."""
    return {
        "float64": 0.0,
        "float16": 2.0**-24,
        "float8_e4m3fnuz": 2.0**-10,
        "float8_e5m2fnuz": 2.0**-17,
    }.get(dtype, 2.0**-149)


def _local_scale(size: Floats) -> Floats:
    """The size of the output round each element: row scale times column scale over the whole's.

    Problems that scale rows or columns by widely different factors get a floor for each; an output with
    one axis has one scale.
    """
    overall = _rms(size)
    if size.ndim < 2 or overall == 0.0:
        return np.full(size.shape, overall)
    top = float(size.max())
    squares = np.square(size / top)
    rows = np.sqrt(squares.mean(axis=-1, keepdims=True))
    columns = np.sqrt(squares.mean(axis=-2, keepdims=True))
    scale: Floats = top * np.minimum(rows, rows * columns * (top / overall))
    return scale
