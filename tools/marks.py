"""Marks in a problem folder for what its author still has to fill in, each a comment with a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.sandbox.files import read_regular

from .text import excerpt

__all__ = ["MARK", "Mark", "find_marks"]

MARK = "FILL IN:"

_LINE = re.compile(rf"(?:#|//)\s*{MARK}[ \t]*(.*)")
_MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark: where it stands, and what is to be filled in."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: still to be filled in: {self.text}"


def find_marks(files: Iterable[Path]) -> Iterator[Mark]:
    """The marks in these text files, in order."""
    for file in files:
        text = read_regular(file, _MOST_BYTES).decode(errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if found := _LINE.search(line):
                yield Mark(file.name, number, excerpt(found[1]) if len(found[1]) > 300 else found[1])
