"""TOML with places: which line a key stands on, and how to change one value and nothing else.

Covers tables, arrays of tables and dotted keys at the start of a line. Not covered: keys inside
inline tables and multi-line strings, for which the nearest enclosing line is given.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

__all__ = ["Entry", "TomlError", "find_entries", "line_of", "parse_toml", "replace_value"]

_HEADER = re.compile(r"^\s*(\[\[?)([^\[\]]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=\s*""")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")
_VALUE = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#,]+)""")
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){32}""")

Path = tuple[str | int, ...]


class TomlError(ValueError):
    """Text that is not TOML; `line` counts from 1 within the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Entry:
    """A table header or a key: its path (array tables carry their index), line, and value's column."""

    path: Path
    line: int
    column: int


def parse_toml(text: str) -> dict[str, Any]:
    """Parse `text`; TomlError carries the line."""
    # tomllib takes quadratic time over the parts of one key.
    if long := _LONG_KEY.search(text):
        raise TomlError("a key has too many parts", text.count("\n", 0, long.start()) + 1)
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except RecursionError:
        raise TomlError("it is nested too deeply", 1) from None
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        message = _PLACE.sub("", str(error))
        raise TomlError(message[:1].lower() + message[1:], line) from None
    except ValueError:
        raise TomlError("a number has too many digits", 1) from None


def _parts(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def find_entries(text: str) -> list[Entry]:
    """Every table header and every key that opens a line, in order."""
    entries: list[Entry] = []
    table: Path = ()
    counts: dict[Path, int] = {}
    for line, content in enumerate(text.split("\n"), start=1):
        header = _HEADER.match(content.rstrip("\r"))
        if header:
            table = _parts(header[2])
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = (*table, index)
            entries.append(Entry(table, line, 0))
            continue
        key = _KEY.match(content)
        if key:
            entries.append(Entry((*table, *_parts(key[1])), line, key.end()))
    return entries


def line_of(text: str, path: Path) -> int | None:
    """The first line under the longest known prefix of `path`; ``None`` when its first part is unknown."""
    entries = find_entries(text)
    for length in range(len(path), 0, -1):
        for entry in entries:
            if entry.path[:length] == path[:length]:
                return entry.line
    return None


def replace_value(text: str, path: Path, value: str) -> str:
    """`text` with the one-line value at `path` replaced by the TOML literal `value`; KeyError if absent."""
    for entry in find_entries(text):
        if entry.path == path and entry.column:
            lines = text.split("\n")
            content = lines[entry.line - 1]
            found = _VALUE.match(content, entry.column)
            if found is None:
                break
            lines[entry.line - 1] = content[: found.start()] + value + content[found.end() :]
            return "\n".join(lines)
    raise KeyError(path)
