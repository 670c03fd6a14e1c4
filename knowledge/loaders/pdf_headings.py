"""Where the sections of a PDF start: from its outline, else from how its lines are set and numbered."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..identifiers import find_identifiers
from .pdf_layout import Line

__all__ = ["Entry", "Heading", "by_outline", "by_type", "outline_entries", "title_of", "with_names"]

_LARGER, _SET_OFF = 1.12, 1.04
_LONGEST = 140
_NUMBERED = re.compile(
    r"^(?:(?P<dotted>\d{1,2}(?:\.\d{1,2})*)\.?|(?P<roman>[IVX]{1,5})\.|(?P<letter>[A-Z])\.)\s+\S"
)
_KNOWN = re.compile(
    r"^(abstract|introduction|background|related work|conclusions?|acknowledge?ments?|references|"
    r"appendix\b.{0,60})$",
    re.IGNORECASE,
)
_SLACK = 14.0


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the outline; `y` is where on the page (from 1) it points, if it says so."""

    level: int
    title: str
    page: int
    y: float | None


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that takes the lines from `start` up to before `end`."""

    start: int
    end: int
    path: tuple[str, ...]


def outline_entries(document: Any) -> list[Entry]:
    """The outline's entries that point into the document."""
    found: list[Entry] = []
    for bookmark in document.get_toc(max_depth=8):
        title = " ".join((bookmark.get_title() or "").split())
        target = bookmark.get_dest()
        page = target.get_index() if target is not None else None
        if title and page is not None:
            found.append(Entry(bookmark.level, title, page + 1, _height(target)))
    return found


def _height(target: Any) -> float | None:
    """The height that a destination points at, if its kind of view has one."""
    mode, values = target.get_view()
    match len(values), mode:
        case 3, _:
            return float(values[1]) or None
        case 1, 3 | 7:
            return float(values[0]) or None
        case 4, _:
            return float(values[3]) or None
        case _:
            return None


def by_outline(entries: Sequence[Entry], lines: Sequence[Line]) -> list[Heading]:
    """Headings where the outline has them, on the lines that repeat their text where there are some."""
    pages = [line.page for line in lines]
    headings: list[Heading] = []
    path: list[tuple[int, str]] = []
    at = 0
    for entry in entries:
        path = [above for above in path if above[0] < entry.level] + [(entry.level, entry.title)]
        first, end = bisect.bisect_left(pages, entry.page), bisect.bisect_right(pages, entry.page)
        start, stop = _place(entry, lines, max(first, at if at <= end else first), end)
        if headings and start < headings[-1].end:
            start = stop = headings[-1].end
        headings.append(Heading(start, max(start, stop), tuple(title for _, title in path)))
        at = headings[-1].end
    return headings


def with_names(headings: Sequence[Heading], lines: Sequence[Line], body: float) -> list[Heading]:
    """The outline's headings, and below them the names that stand alone and set off: a manual's functions."""
    found: list[Heading] = []
    path: tuple[str, ...] = ()
    starts = {heading.start: heading for heading in headings}
    taken = {index for heading in headings for index in range(heading.start, heading.end)}
    for index, line in enumerate(lines):
        path = starts[index].path if index in starts else path
        name = line.text.strip()
        set_off = line.bold or line.size >= _SET_OFF * body
        if (
            path
            and index not in taken
            and set_off
            and len(line.cells) == 1
            and find_identifiers(name) == [name]
        ):
            found.append(Heading(index, index + 1, (*path, name)))
    return sorted([*headings, *found], key=lambda heading: (heading.start, heading.end))


def _place(entry: Entry, lines: Sequence[Line], first: int, end: int) -> tuple[int, int]:
    """The lines from `first` to `end` that are the entry's heading; an empty range where it would be."""
    wanted = _letters(entry.title)
    bare = _without_number(wanted)
    for index in range(first, end):
        text = ""
        if not _letters(lines[index].text):
            continue
        for stop in range(index, min(index + 3, end)):
            text += _letters(lines[stop].text)
            if text == wanted or (bare and _without_number(text) == bare):
                return index, stop + 1
            if not wanted.startswith(text) and not bare.startswith(_without_number(text)):
                break
    if entry.y is not None:
        for index in range(first, end):
            if lines[index].y0 <= entry.y + _SLACK and lines[index].y1 <= entry.y + _SLACK:
                return index, index
        return end, end
    return first, first


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _without_number(letters: str) -> str:
    return re.sub(r"^(?:chapter|section)?\d+", "", letters)


def title_of(document: Any, lines: list[Line], body: float, fallback: str) -> tuple[str, list[Line]]:
    """The title, and the lines without it: the largest type on the first page, else what the file says."""
    first = [line for line in lines if line.page == lines[0].page]
    largest = max(line.size for line in first)
    start = next(index for index, line in enumerate(first) if line.size == largest)
    end = start
    while end < len(first) and abs(first[end].size - largest) < 0.5:
        end += 1
    shown = " ".join(" ".join(line.text for line in first[start:end]).split())
    said = " ".join((document.get_metadata_value("Title") or "").split())
    if said and not re.fullmatch(r"untitled|\(?anonymous\)?|.*\.(?:docx?|tex|dvi|indd)", said, re.IGNORECASE):
        if _letters(shown) == _letters(said):
            return said, lines[:start] + lines[end:]
        return said, lines
    if largest >= _LARGER * body and 3 <= len(shown) <= 300 and not _NUMBERED.match(shown):
        return shown, lines[:start] + lines[end:]
    return fallback, lines


def by_type(lines: Sequence[Line], body: float) -> list[Heading]:
    """Headings by how they are set: larger, or set off with a number or a usual name."""
    spans = _spans(lines, body)
    sizes = sorted({round(lines[start].size) for start, _ in spans}, reverse=True)
    headings: list[Heading] = []
    path: list[tuple[int, str]] = []
    for start, end in spans:
        text = " ".join(" ".join(line.text for line in lines[start:end]).split())
        level = _level(text, sizes.index(round(lines[start].size)))
        path = [above for above in path if above[0] < level] + [(level, text)]
        headings.append(Heading(start, end, tuple(title for _, title in path)))
    return headings


def _spans(lines: Sequence[Line], body: float) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for index, line in enumerate(lines):
        if not _is_heading(line, body):
            continue
        if spans and spans[-1][1] == index and _goes_on(lines[index - 1], line):
            spans[-1] = (spans[-1][0], index + 1)
        else:
            spans.append((index, index + 1))
    return spans


def _goes_on(before: Line, line: Line) -> bool:
    close = before.region == line.region and before.y0 - line.y0 < 1.6 * line.size
    return close and abs(before.size - line.size) < 0.5 and not _NUMBERED.match(line.text)


def _is_heading(line: Line, body: float) -> bool:
    text = line.text.strip()
    if line.fixed or not 2 < len(text) <= _LONGEST or not re.search(r"[^\W\d_]{2}", text):
        return False
    if len(line.cells) > 2 or text.endswith((",", ";")):
        return False
    if line.size >= _LARGER * body:
        return True
    is_set_off = line.bold or text.isupper() or line.size >= _SET_OFF * body
    return is_set_off and not text.endswith(".") and bool(_NUMBERED.match(text) or _KNOWN.match(text))


def _level(text: str, rank: int) -> int:
    """1 for the outermost; a number's depth says more than the size of type."""
    numbered = _NUMBERED.match(text)
    if numbered and numbered["dotted"]:
        return numbered["dotted"].count(".") + 1
    if numbered and numbered["roman"]:
        return 1
    return 2 if numbered else 1 + rank
