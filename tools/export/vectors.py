"""Test vectors: inputs that reference.py drew and the outputs it expects, in a form that a program can read.

The format, little-endian: a mark that holds the problem's key; the number of vectors as uint32; and of each
vector its name (uint32 length, UTF-8), its extents (int64), its inputs as they lie in memory, and per
output either the elements (integers) or the expected values and then the error that each may have (float64).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..batches import shape_text
from ..dtypes import is_float
from ..problem import Problem

__all__ = ["MAX_EMBEDDED_BYTES", "Vectors", "all_vectors", "few_vectors", "vectors_mark"]

MAX_EMBEDDED_BYTES = 256 * 1024
"""What an exported file may carry; the smallest vector is in it whatever its size."""

_MOST_SMALLEST = 8 * 2**20
_SEED = 20506

Case = tuple[Mapping[str, int], str]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors in their format; `names` say of which shapes and distributions, `left_out` shapes have none."""

    data: bytes
    names: tuple[str, ...]
    left_out: tuple[Mapping[str, int], ...] = ()


def vectors_mark(problem: Problem) -> str:
    """The text that the problem's vectors begin with."""
    return f"kernel-scientist vectors 1 {problem.key}\n"


def all_vectors(problem: Problem) -> Vectors:
    """Every test shape with every distribution."""
    return _pack(problem, [(s, d) for s in _test_shapes(problem) for d in problem.distributions], ())


def few_vectors(problem: Problem, most_bytes: int = MAX_EMBEDDED_BYTES) -> Vectors:
    """Test shapes, the smallest first, each with a distribution of its own, as far as `most_bytes` reach.

    No vector at all where even the smallest is too large to be carried about.
    """
    shapes = sorted(_test_shapes(problem), key=lambda shape: _bytes(problem, shape))
    cases: list[Case] = []
    left_out: list[Mapping[str, int]] = []
    used = 0
    for number, shape in enumerate(shapes):
        size = _bytes(problem, shape)
        if used + size <= most_bytes or (number == 0 and size <= _MOST_SMALLEST):
            cases.append((shape, problem.distributions[len(cases) % len(problem.distributions)]))
            used += size
        else:
            left_out.append(shape)
    return _pack(problem, cases, left_out)


def _test_shapes(problem: Problem) -> list[Mapping[str, int]]:
    shapes = [shape for one in problem.shapes.values() for shape in one.tests]
    return list({tuple(shape[name] for name in problem.domain): shape for shape in shapes}.values())


def _bytes(problem: Problem, shape: Mapping[str, int]) -> int:
    """Bytes of a vector, its name and extents aside."""
    return sum(
        16 * buffer.elements(shape)
        if buffer.role == "output" and is_float(buffer.dtype)
        else buffer.nbytes(shape)
        for buffer in problem.buffers
    )


def _pack(problem: Problem, cases: Sequence[Case], left_out: Sequence[Mapping[str, int]]) -> Vectors:
    parts = [vectors_mark(problem).encode(), struct.pack("<I", len(cases))]
    names: list[str] = []
    for shape, distribution in cases:
        name = f"{shape_text(shape)}, {distribution}"
        names.append(name)
        parts += [struct.pack("<I", len(name.encode())), name.encode()]
        parts += [struct.pack("<q", shape[dimension]) for dimension in problem.domain]
        parts += _arrays(problem, shape, distribution)
    return Vectors(b"".join(parts), tuple(names), tuple(left_out))


def _arrays(problem: Problem, shape: Mapping[str, int], distribution: str) -> Iterator[bytes]:
    inputs = problem.inputs(np.random.default_rng(_SEED), distribution, shape)
    expected = problem.reference(inputs, shape)
    allowed = problem.allowance(expected, inputs, shape)
    for buffer in problem.buffers:
        if buffer.role == "input":
            yield buffer.pack(inputs[buffer.name]).tobytes()
    for buffer in problem.buffers:
        if buffer.role == "output" and is_float(buffer.dtype):
            for values in (expected[buffer.name], allowed[buffer.name]):
                yield np.asarray(values, dtype="<f8").tobytes(order=buffer.order)
        elif buffer.role == "output":
            yield buffer.pack(expected[buffer.name]).tobytes()
