"""A plot in plain text: ratios with their intervals on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_scientist.tools.evaluation import Interval

__all__ = ["interval_plot"]

_LABEL = 24
_LEAST_WIDTH = 20
_MARGIN = 1.02
# What an axis shows at most: beyond that an interval is drawn as running off it.
_FURTHEST = 1000.0
_STEPS = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)


def interval_plot(rows: Sequence[tuple[str, Interval]], *, width: int = 80) -> list[str]:
    """One line ``[--o--]`` a row, ``|`` marking a ratio of 1, and the axis below; `width` columns at most.

    ``<`` and ``>`` mark an interval that goes on beyond the axis.
    """
    room = min(max(len(label) for label, _ in rows), _LABEL)
    axis = _Axis.around([one for _, one in rows], max(_LEAST_WIDTH, width - room - 2))
    lines = [f"{_cut(label, room).ljust(room)}  {axis.bar(one)}".rstrip() for label, one in rows]
    ruler, labels = axis.scale()
    return [*lines, f"{'':{room}}  {ruler}", f"{'':{room}}  {labels}".rstrip()]


def _cut(label: str, room: int) -> str:
    return label if len(label) <= room else f"{label[: room - 1]}~"


class _Axis:
    """A logarithmic axis of `columns` characters from `low` to `high`, with 1 on it."""

    def __init__(self, low: float, high: float, columns: int) -> None:
        self._low, self._high, self._columns = math.log(low), math.log(high), columns

    @classmethod
    def around(cls, intervals: Sequence[Interval], columns: int) -> _Axis:
        ends = [1.0 / _MARGIN, _MARGIN]
        for one in intervals:
            ends += [max(one.low, 1 / _FURTHEST) / _MARGIN, min(one.high, _FURTHEST) * _MARGIN]
        return cls(min(ends), max(ends), columns)

    def column(self, ratio: float) -> int:
        """Where `ratio` stands; what is beyond an end stands at that end."""
        if not 0.0 < ratio < math.inf:
            return 0 if ratio <= 0.0 else self._columns - 1
        share = (math.log(ratio) - self._low) / (self._high - self._low)
        return min(max(round(share * (self._columns - 1)), 0), self._columns - 1)

    def bar(self, one: Interval) -> str:
        cells = [" "] * self._columns
        cells[self.column(1.0)] = "|"
        left, right = self.column(one.low), self.column(one.high)
        cells[left : right + 1] = "-" * (right + 1 - left)
        cells[left] = "[" if one.low >= 1 / _FURTHEST else "<"
        cells[right] = "]" if one.high <= _FURTHEST else ">"
        cells[self.column(one.value)] = "o"
        return "".join(cells)

    def scale(self) -> tuple[str, str]:
        """The ruler and its labels: 1, then as many round ratios as there is room for, the outer first."""
        ruler, labels = ["-"] * self._columns, [" "] * self._columns
        inside = [step for step in _STEPS[1:] if math.log(step) <= max(-self._low, self._high)]
        for ratio in (1.0, *(value for step in reversed(inside) for value in (step, 1 / step))):
            if self._low <= math.log(ratio) <= self._high:
                self._mark(ratio, ruler, labels)
        return "".join(ruler), "".join(labels)

    def _mark(self, ratio: float, ruler: list[str], labels: list[str]) -> None:
        text, column = f"{ratio:.3g}x", self.column(ratio)
        start = min(max(column - len(text) // 2, 0), self._columns - len(text))
        taken = labels[max(start - 2, 0) : start + len(text) + 2]
        if all(cell == " " for cell in taken):
            labels[start : start + len(text)] = text
            ruler[column] = "|" if ratio == 1.0 else "+"
