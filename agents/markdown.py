"""Foreign text in Markdown: shown as it is, whatever it says, on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernel_scientist.sandbox.printable import printable, without_escapes

__all__ = ["code", "count", "plain", "table"]

# Whatever opens emphasis, code, a link, HTML, a table's cell, an entity, mathematics or a mention.
_MARKS = re.compile(r"[\\`*_\[\]<>|~&$@#!]")
# What GitHub and others make a link of, though nothing marks it.
_BARE = re.compile(r"(?i)(?<=[a-z])(?=://)|(?<=www)(?=\.)")
# A list, a heading or a rule, where the text begins a line.
_FIRST = re.compile(r"^(?=[-+=]|\d+[.)])")


def plain(text: str, limit: int = 400) -> str:
    """`text` as Markdown that shows just its characters, on one line, cut at `limit` of them."""
    line = " ".join(printable(without_escapes(text), "\ufffd").split())
    line = line if len(line) <= limit else f"{line[: limit - 1]}…"
    line = _MARKS.sub(lambda match: f"\\{match[0]}", line)
    line = _BARE.sub(lambda _: "\\", line)
    return _FIRST.sub(_before_first, line)


def _before_first(match: re.Match[str]) -> str:
    # A digit cannot be escaped, and a blank that does not break keeps it from beginning the line.
    return "\u00a0" if match.string[:1].isdigit() else "\\"


def count(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def code(text: str, limit: int = 200) -> str:
    """`text` as a code span: one line, in more backticks than it has in a row."""
    line = " ".join(printable(without_escapes(text), "\ufffd").split())[:limit] or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    # A table's cells are cut at bars before anything else is read.
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; the cells are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines] + [""]
