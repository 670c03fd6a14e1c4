"""Conditions on a shape that tell apart the shapes on which different kernels win.

A decision tree over the dimensions: at each node the threshold that leaves the fewest shapes on the wrong
side, between two extents that occur. Distinct shapes differ in some dimension, so the tree ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Leaf", "Split", "conditional", "conditions", "grow"]

Shape = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Leaf:
    """All shapes here have one winner."""

    winner: int


@dataclass(frozen=True, slots=True)
class Split:
    """Shapes whose dimension is at most `most` go to `low`, the others to `high`."""

    dimension: str
    most: int
    low: Leaf | Split
    high: Leaf | Split

    @property
    def test(self) -> str:
        return f"{self.dimension} <= {self.most}"


def grow(shapes: Sequence[Shape], winners: Sequence[int]) -> Leaf | Split:
    """The tree for distinct shapes and the winner on each."""
    if len(set(winners)) == 1:
        return Leaf(winners[0])
    cuts = [
        (dimension, low)
        for dimension in shapes[0]
        for low in sorted({shape[dimension] for shape in shapes})[:-1]
    ]
    dimension, most = min(cuts, key=lambda cut: _mixed(shapes, winners, *cut))
    sides: list[Leaf | Split] = []
    for is_low in (True, False):
        here = [index for index, shape in enumerate(shapes) if (shape[dimension] <= most) == is_low]
        sides.append(grow([shapes[index] for index in here], [winners[index] for index in here]))
    return Split(dimension, most, sides[0], sides[1])


def _mixed(shapes: Sequence[Shape], winners: Sequence[int], dimension: str, most: int) -> int:
    """How many shapes are not of their side's commonest winner."""
    wrong = 0
    for is_low in (True, False):
        side = [
            winner
            for shape, winner in zip(shapes, winners, strict=True)
            if (shape[dimension] <= most) == is_low
        ]
        wrong += len(side) - max(map(side.count, side))
    return wrong


def conditional(tree: Leaf | Split, values: Sequence[str]) -> str:
    """One expression with `values[winner]` at each leaf; equal values need no test."""
    if isinstance(tree, Leaf):
        return values[tree.winner]
    low, high = conditional(tree.low, values), conditional(tree.high, values)
    return low if low == high else f"({low} if {tree.test} else {high})"


def conditions(tree: Leaf | Split, winner: int) -> str:
    """The expression that holds exactly on the shapes of `winner`; empty when it wins on none."""
    return " or ".join(_paths(tree, winner, []))


def _paths(tree: Leaf | Split, winner: int, above: list[str]) -> list[str]:
    if isinstance(tree, Leaf):
        return [" and ".join(above) or "1"] if tree.winner == winner else []
    return [
        *_paths(tree.low, winner, [*above, tree.test]),
        *_paths(tree.high, winner, [*above, f"{tree.dimension} > {tree.most}"]),
    ]
