"""Where an exported kernel comes from and what was measured of it, as lines for a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ..text import clean

__all__ = ["Exported", "Provenance", "comment_lines"]

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Provenance:
    """`source` names the run and candidate or the file; `measured` are sentences, or "not measured"."""

    source: str
    measured: Sequence[str]
    version: str


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of an exported file; how many builds and which test vectors it has, and how it is used
    (FILE is where it lies)."""

    text: str
    builds: int
    vectors: tuple[str, ...]
    use: str


def comment_lines(sentences: Sequence[str], mark: str) -> list[str]:
    """Sentences as comment lines. Whatever the text is, it stays within the comment."""
    lines: list[str] = []
    for sentence in sentences:
        # A backslash at its end would draw the next line into a comment of C++.
        words = " ".join(clean(sentence).replace("\\", "/").split())
        lines += textwrap.wrap(words, _WIDTH, subsequent_indent="  ") or [""]
    return [f"{mark} {line}".rstrip() for line in lines]
