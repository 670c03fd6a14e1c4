"""Lines of a PDF to paragraphs, tables and code; words hyphenated at a line's end are whole again."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .pdf_layout import Line
from .pdf_text import Run

__all__ = ["Block", "blocks", "leading"]

_BULLET = re.compile(r"^(?:[•◦▪‣∙·–—*]|-|\(?(?:\d{1,2}|[a-z])[.)])\s+\S")  # noqa: RUF001
_ENDS_SENTENCE = (".", ":", "?", "!", ";")
_ALIGNED = 2.5
# The end of a line that breaks a word, or an identifier after one of its underscores.
_BROKEN = re.compile(r"([\w-]*\w)-$|\w_$")


@dataclass(slots=True)
class Block:
    """A paragraph, a table or code that starts on `page`."""

    kind: Literal["prose", "table", "code"]
    page: int
    lines: list[Line] = field(default_factory=list[Line])

    def text(self, compounds: frozenset[str]) -> str:
        """As plain text; of `compounds`, words with a hyphen of their own, the hyphen stays."""
        match self.kind:
            case "prose":
                return _joined([line.text for line in self.lines], compounds)
            case "code":
                return _code(self.lines)
            case "table":
                return "\n".join(_table(self.lines))


def leading(lines: Sequence[Line]) -> float:
    """The usual distance of a document's lines, in font sizes."""
    found = [
        (before.y0 - line.y0) / line.size
        for before, line in itertools.pairwise(lines)
        if before.region == line.region and 0.8 < (before.y0 - line.y0) / line.size < 2.5
    ]
    return statistics.median_low(found) if found else 1.2


def blocks(lines: Sequence[Line], usual: float) -> Iterator[Block]:
    """The blocks that lines make, in their order; `usual` is their `leading`."""
    block: Block | None = None
    index = 0
    while index < len(lines):
        line = lines[index]
        rows = _rows_of_table(lines, index, usual)
        if rows:
            if block is not None:
                yield block
            block = None
            yield Block("table", line.page, list(lines[index : index + rows]))
            index += rows
            continue
        kind: Literal["prose", "code"] = "code" if line.fixed else "prose"
        if block is None or not _continues(block, kind, line, usual):
            if block is not None:
                yield block
            block = Block(kind, line.page)
        block.lines.append(line)
        index += 1
    if block is not None:
        yield block


def _continues(block: Block, kind: str, line: Line, usual: float) -> bool:
    before = block.lines[-1]
    if block.kind != kind:
        return False
    same_region = before.region == line.region
    if kind == "code":
        return not same_region or before.y0 - line.y0 < 3 * usual * line.size
    if abs(before.size - line.size) > 0.08 * line.size or _BULLET.match(line.text):
        return False
    if not same_region:
        return not before.text.rstrip().endswith(_ENDS_SENTENCE) and line.text[:1].islower()
    if before.y0 - line.y0 > 1.25 * usual * line.size:
        return False
    # A first line is indented, and what follows a bullet is too.
    indented = line.x0 > before.x0 + 0.8 * line.size and len(block.lines) > 1
    return not (indented and before.text.rstrip().endswith(_ENDS_SENTENCE))


def _rows_of_table(lines: Sequence[Line], start: int, usual: float) -> int:
    """How many lines from `start` on are a table: at least two whose inner cells stand below each other."""
    end, rows = start, 0
    last: Line | None = None
    while end < len(lines):
        line = lines[end]
        if last is None:
            if len(line.cells) < 2 or line.fixed:
                return 0
        elif line.region != last.region or lines[end - 1].y0 - line.y0 > 2.2 * usual * line.size:
            break
        elif _below(last, line):
            rows += 1
        elif not _is_wrapped(last, lines[end - 1], line, usual):
            break
        if len(line.cells) > 1:
            last = line
        end += 1
    return end - start if rows else 0


def _below(above: Line, line: Line) -> bool:
    """Whether an inner cell starts, or ends short of the margin, where one above does."""
    for cell in line.cells[1:]:
        for other in above.cells[1:]:
            ends = abs(cell.x1 - other.x1) < _ALIGNED and cell.x1 < line.right - _ALIGNED
            middle = abs(cell.x0 + cell.x1 - other.x0 - other.x1) < 2 * _ALIGNED and cell.x1 < line.right
            if abs(cell.x0 - other.x0) < _ALIGNED or ends or middle:
                return True
    return False


def _is_wrapped(row: Line, before: Line, line: Line, usual: float) -> bool:
    """Whether a line only goes on with inner cells of the row above it."""
    close = before.y0 - line.y0 < 1.3 * usual * line.size
    inner = row.cells[1:]
    return close and all(any(abs(c.x0 - other.x0) < _ALIGNED for other in inner) for c in line.cells)


def _table(lines: list[Line]) -> Iterator[str]:
    columns = _columns(lines)
    rows: list[list[str]] = []
    for line in lines:
        texts = [""] * len(columns)
        for cell in line.cells:
            at = max(range(len(columns)), key=lambda index: _overlap(columns[index], cell))
            texts[at] = f"{texts[at]} {cell.text}".strip()
        if rows and not texts[0]:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], texts, strict=True)]
        else:
            rows.append(texts)
    for number, row in enumerate(rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def _columns(lines: list[Line]) -> list[tuple[float, float]]:
    """The extents of the columns: cells of different lines that overlap are of one."""
    columns: list[tuple[float, float]] = []
    # Rows with the most cells first: a heading across several columns must not join them.
    for line in sorted(lines, key=lambda line: -len(line.cells)):
        for cell in line.cells:
            over = [column for column in columns if _overlap(column, cell) > 0]
            if not over:
                columns.append((cell.x0, cell.x1))
            elif len(over) == 1:
                columns[columns.index(over[0])] = (min(over[0][0], cell.x0), max(over[0][1], cell.x1))
    return sorted(columns)


def _overlap(column: tuple[float, float], cell: Run) -> float:
    return min(column[1], cell.x1) - max(column[0], cell.x0)


def _code(lines: list[Line]) -> str:
    """Code with its indentation and blank lines, in a fence."""
    lefts: dict[int, float] = {}
    for line in lines:
        lefts[line.region] = min(lefts.get(line.region, line.x0), line.x0)
    out: list[str] = []
    before: Line | None = None
    for line in lines:
        width = max(1.0, (line.cells[0].x1 - line.cells[0].x0) / max(1, len(line.cells[0].text)))
        if before is not None and before.region == line.region and before.y0 - line.y0 > 1.8 * line.size:
            out.append("")
        shown = ""
        for cell in line.cells:
            at = round((cell.x0 - lefts[line.region]) / width)
            shown += " " * max(at - len(shown), 1 if shown else 0) + cell.text
        out.append(shown)
        before = line
    fence = "~~~~" if any("```" in line for line in out) else "```"
    return "\n".join([fence, *out, fence])


def _joined(lines: list[str], compounds: frozenset[str]) -> str:
    text = " ".join(lines[0].split())
    for line in lines[1:]:
        following = " ".join(line.split())
        text = _without_hyphen(text, following, compounds)
    return text


def _without_hyphen(text: str, following: str, compounds: frozenset[str]) -> str:
    """Two lines as one; only a hyphen between letters of one word goes, an identifier's own marks stay."""
    broken, first = _BROKEN.search(text), re.match(r"\w+", following)
    if not first or not broken:
        return f"{text} {following}"
    if broken[0].endswith("_"):
        return text + following
    is_word = broken[1].isalpha() and first[0].isalpha() and following[0].islower()
    is_compound = f"{broken[1]}-{first[0]}".lower() in compounds
    return (text[:-1] if is_word and not is_compound else text) + following
