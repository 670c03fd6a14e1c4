"""Runs of text to lines in the order people read them: column by column, headers and footers gone."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .pdf_text import Page, Run

__all__ = ["Line", "reading_order", "without_furniture"]

# The share of a page's height, at its top and bottom, in which headers and footers are looked for.
_MARGIN = 0.085
_REPEATED = 3
# Columns have at least so many lines, filled to this share in the middle; cells of tables are emptier.
_COLUMN_LINES, _FILLED = 5, 0.55
_STEP = 3.0
# A line of a table of contents: it only repeats a heading and says where that is.
_LEADER = re.compile(r"(?:\.\s?){5,}\s*[\divxl]+\s*$")
_MARK = re.compile(r"[•◦▪‣∙·–—*o-]|\(?(?:\d{1,2}|[a-z])[.)]")  # noqa: RUF001


@dataclass(slots=True)
class Line:
    """Runs side by side; `region` numbers the column or full-width band of the document it is in."""

    cells: list[Run]
    page: int
    region: int = 0
    left: float = 0.0
    right: float = 0.0

    @property
    def x0(self) -> float:
        return self.cells[0].x0

    @property
    def y0(self) -> float:
        return min(cell.y0 for cell in self.cells)

    @property
    def y1(self) -> float:
        return max(cell.y1 for cell in self.cells)

    @property
    def size(self) -> float:
        return max(self.cells, key=lambda cell: len(cell.text)).size

    @property
    def bold(self) -> bool:
        return all(cell.bold for cell in self.cells)

    @property
    def fixed(self) -> bool:
        return all(cell.fixed for cell in self.cells)

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)


def without_furniture(pages: Sequence[Page]) -> None:
    """Take out of the pages what repeats at the same height of their margins, numbers aside."""
    seen: Counter[tuple[str, int]] = Counter()
    for page in pages:
        seen.update({key for run in page.runs if (key := _key(page, run)) is not None})
    for page in pages:
        keys = [_key(page, run) for run in page.runs]
        heights = [
            run.y0
            for run, key in zip(page.runs, keys, strict=True)
            if key is not None and seen[key] >= _REPEATED
        ]
        page.runs = [
            run
            for run, key in zip(page.runs, keys, strict=True)
            if key is None or not any(abs(run.y0 - height) < 2 for height in heights)
        ]


def _key(page: Page, run: Run) -> tuple[str, int] | None:
    """What a run of a margin says and how high; ``None`` for the body of the page."""
    low = _MARGIN * page.height
    if low < run.middle < page.height - low:
        return None
    words = re.sub(r"\d+|\b[ivxl]+\b", "#", run.text)
    return " ".join(words.split()), round(run.y0 / 3)


def reading_order(page: Page, first_region: int) -> list[Line]:
    """The page's lines; their regions are numbered from `first_region` on."""
    lines: list[Line] = []
    for region, runs in enumerate(_regions(page.runs), first_region):
        left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
        found = [Line(_with_bullet(row), page.number, region, left, right) for row in _rows(runs)]
        lines += [line for line in found if not _LEADER.search(line.text)]
    return lines


def _with_bullet(row: list[Run]) -> list[Run]:
    """A row whose first run is the mark of a list's item and what follows it as one."""
    if len(row) < 2 or not _MARK.fullmatch(row[0].text):
        return row
    mark, first, *rest = row
    return [replace(first, text=f"{mark.text} {first.text}", x0=mark.x0), *rest]


def _regions(runs: list[Run]) -> Iterator[list[Run]]:
    """Parts of a page to be read one after the other, each a column or a band across."""
    gutter = _gutter(runs)
    if gutter is None:
        if runs:
            yield runs
        return
    across = sorted((run for run in runs if run.x0 < gutter < run.x1), key=lambda run: -run.middle)
    rest = [run for run in runs if not run.x0 < gutter < run.x1]
    ends = [run.middle for run in across]
    bands: list[list[Run]] = [[] for _ in range(len(across) + 1)]
    for run in rest:
        bands[sum(end > run.middle + run.size / 2 for end in ends)].append(run)
    held: list[Run] = []
    for number, band in enumerate(bands):
        beside = [run for run in band if _beside(run, held)]
        held += beside
        band = [run for run in band if not any(run is other for other in beside)]
        if band:
            if held:
                yield held
            held = []
            for side in ([r for r in band if r.x1 <= gutter], [r for r in band if r.x0 >= gutter]):
                yield from _regions(side)
        if number < len(across):
            held.append(across[number])
    if held:
        yield held


def _beside(run: Run, held: list[Run]) -> bool:
    """Whether a run is on the line of one that goes across, as its last word may be."""
    return any(abs(run.middle - other.middle) < 0.4 * other.size for other in held)


def _gutter(runs: list[Run]) -> float | None:
    """Where two columns of running text meet, if there are two."""
    if len(runs) < 2 * _COLUMN_LINES:
        return None
    left, right = min(run.x0 for run in runs), max(run.x1 for run in runs)
    best: tuple[float, float, float] | None = None
    at = left + 0.3 * (right - left)
    while at < left + 0.7 * (right - left):
        crossing = sum(len(run.text) for run in runs if run.x0 < at < run.x1)
        rank = (crossing, abs(at - (left + right) / 2), at)
        if (best is None or rank < best) and _are_columns(runs, left, at, right):
            best = rank
        at += _STEP
    return None if best is None else best[2]


def _are_columns(runs: list[Run], left: float, at: float, right: float) -> bool:
    sides = [run for run in runs if run.x1 <= at], [run for run in runs if run.x0 >= at]
    for side, width in zip(sides, (at - left, right - at), strict=True):
        rows = list(_rows(side)) if len(side) >= _COLUMN_LINES else []
        if len(rows) < _COLUMN_LINES:
            return False
        filled = statistics.median(sum(run.x1 - run.x0 for run in row) / width for row in rows)
        if filled < _FILLED:
            return False
    return True


def _rows(runs: list[Run]) -> Iterator[list[Run]]:
    """Runs of one height, from left to right; rows from the top down."""
    row: list[Run] = []
    for run in sorted(runs, key=lambda run: (-run.middle, run.x0)):
        if row and abs(row[0].middle - run.middle) > 0.45 * max(row[0].size, run.size):
            yield sorted(row, key=lambda run: run.x0)
            row = []
        row.append(run)
    if row:
        yield sorted(row, key=lambda run: run.x0)
