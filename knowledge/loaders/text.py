"""Plain text: sections under headings that are numbered or underlined, and stand between blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .document import LoadedDocument, Section, decode

__all__ = ["load"]

_LONGEST_TITLE = 100
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+[A-Z].{1,80}(?<![.,;:])")
_UNDERLINE = re.compile(r"([=\-~^*#])\1{2,}\s*")


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a text file; its first line is the title when a blank line follows and it reads like one."""
    text = decode(raw).strip("\n")
    first, _, rest = text.partition("\n")
    title = first.strip()
    is_title = 0 < len(title) <= _LONGEST_TITLE and rest.startswith("\n") and title[-1] not in ".,;:"
    sections = tuple(section for section in _sections(text.split("\n")) if section.text.strip())
    return LoadedDocument(title if is_title else Path(name).stem, sections or (Section((), text),))


def _sections(lines: list[str]) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    body: list[str] = []
    styles: list[str] = []
    index = 0
    while index < len(lines):
        heading = _heading(lines, index, styles)
        if heading is None:
            body.append(lines[index])
            index += 1
            continue
        yield Section(tuple(name for _, name in path), "\n".join(body).strip("\n"))
        body = []
        level, text, index = heading
        path = [entry for entry in path if entry[0] < level] + [(level, text)]
    yield Section(tuple(name for _, name in path), "\n".join(body).strip("\n"))


def _heading(lines: list[str], index: int, styles: list[str]) -> tuple[int, str, int] | None:
    """Level and text of a heading at a line, and where what is below it starts; keeps the underlines seen."""
    line = lines[index].rstrip()
    if not line or line[0].isspace() or (index and lines[index - 1].strip()):
        return None
    below = lines[index + 1].rstrip() if index + 1 < len(lines) else ""
    underline = _UNDERLINE.fullmatch(below)
    if underline and len(below) >= len(line) - 1 and len(line) <= _LONGEST_TITLE and line[0].isalnum():
        if underline[1] not in styles:
            styles.append(underline[1])
        return styles.index(underline[1]), line, index + 2
    # The first line of a list looks the same, but more of it follows at once.
    numbered = None if below or not index else _NUMBERED.fullmatch(line)
    return (numbered[1].count(".") + 10, line, index + 1) if numbered else None
