"""The space of a search: places in lists of values, which ones are allowed, and how to go about in it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Places", "Point", "SearchSpace", "Tried"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]
"""A row for each point."""

Point = tuple[int, ...]
Tried = Mapping[Point, float | None]
"""The logarithm of the speed of each configuration tried, in order; ``None`` for one that failed."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Places in lists of `sizes` values, of which `allowed` ones count. `listed` are all of them, if known.

    Values that are not `ordered` are as far from one another as the ends of a list.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    allowed: Callable[[Point], bool]
    listed: Sequence[Point] | None = None

    def places(self, points: Iterable[Point]) -> Places:
        return np.array(list(points), dtype=np.int64).reshape(-1, len(self.sizes))

    def coordinates(self, points: Iterable[Point]) -> Array:
        """A row for each point: ordered places from 0 to 1, one column for each word."""
        places = self.places(points)
        columns: list[Array] = []
        for axis, size in enumerate(self.sizes):
            place = places[:, axis]
            if self.ordered[axis] or size <= 2:
                columns.append((place / max(1, size - 1))[:, None])
            else:
                columns.append((place[:, None] == np.arange(size)) / math.sqrt(2.0))
        return np.concatenate(columns, axis=1)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """The allowed points that differ in one place."""
        for axis, size in enumerate(self.sizes):
            for place in range(size):
                other = (*point[:axis], place, *point[axis + 1 :])
                if place != point[axis] and self.allowed(other):
                    yield other

    def sample(self, draw: random.Random, count: int) -> Iterator[Point]:
        """Allowed points drawn at random, perhaps fewer and perhaps one twice."""
        if self.listed is not None:
            yield from draw.sample(self.listed, min(count, len(self.listed)))
            return
        for _ in range(20 * count):
            point = tuple(draw.randrange(size) for size in self.sizes)
            if self.allowed(point):
                yield point
                count -= 1
                if count == 0:
                    return
