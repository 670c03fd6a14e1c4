"""The questions: read from `questions.toml`, divided into a half to tune on and a half that is held out."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["HALVES", "KINDS", "Half", "Kind", "Question", "Target", "questions"]

Kind = Literal["plain", "abbreviation", "identifier"]
Half = Literal["tuning", "held-out"]
KINDS: tuple[Kind, ...] = ("plain", "abbreviation", "identifier")
HALVES: tuple[Half, ...] = ("tuning", "held-out")
_FILE = Path(__file__).parent / "questions.toml"


@dataclass(frozen=True, slots=True)
class Target:
    """A section of a document, by its headings: what it is cut into does not matter."""

    document: str
    section: str

    @property
    def bundled(self) -> bool:
        return self.document.startswith("library/")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the sections that answer it, any of which is right."""

    kind: Kind
    text: str
    right: tuple[Target, ...]

    @property
    def half(self) -> Half:
        """By a hash of the text, so that nobody chooses."""
        return HALVES[hashlib.sha256(self.text.encode()).digest()[0] % 2]

    @property
    def bundled(self) -> bool:
        """Whether the bundled library alone can answer it."""
        return all(target.bundled for target in self.right)


def questions() -> list[Question]:
    """All questions in the order of the file."""
    entries = tomllib.loads(_FILE.read_text())["question"]
    return [Question(entry["kind"], entry["text"], tuple(map(_target, entry["right"]))) for entry in entries]


def _target(text: str) -> Target:
    document, _, section = text.partition(" |")
    return Target(document, section.strip())
