"""What people name to be added, and the single files and addresses that it comes to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from .fetching import arxiv_id, arxiv_page, is_address

__all__ = ["About", "Entry", "Wanted", "entries"]

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "build", "dist"})
# What an address counts for in the time left, before its size is known.
_TYPICAL_SIZE = 300_000
_NO_TEXT = "its name holds bytes that are not UTF-8; rename it"


@dataclass(frozen=True, slots=True)
class About:
    """What the user knows of a document; it goes before what the document says of itself."""

    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file, folder, address or arXiv identifier to be added."""

    source: str
    tags: tuple[str, ...] = ()
    about: About = About()

    def to_json(self) -> str:
        """For remembering it; see `from_json`."""
        about = self.about
        return json.dumps(
            {
                "tags": self.tags,
                "title": about.title,
                "authors": about.authors,
                "year": about.year,
                "origin": about.origin,
            }
        )

    @classmethod
    def from_json(cls, source: str, text: str) -> Wanted:
        """What `to_json` wrote for `source`."""
        known = cast("dict[str, Any]", json.loads(text))
        about = About(known["title"], tuple(known["authors"]), known["year"], known["origin"])
        return cls(source, tuple(known["tags"]), about)


@dataclass(frozen=True, slots=True)
class Entry:
    """One document to be: a file at `path`, or an address when there is none; or why there is nothing to add.

    `wanted.source` is its identity in the knowledge base; `weight` is about its size in bytes.
    """

    wanted: Wanted
    path: Path | None = None
    failure: str | None = None
    weight: int = 0


def entries(wanted: Wanted) -> Iterator[Entry]:
    """The documents that a source comes to, in order; a folder's are all files below it."""
    text = wanted.source
    if (shown := _as_text(text)) != text:
        yield Entry(replace(wanted, source=shown), failure=_NO_TEXT)
        return
    if is_address(text):
        paper = arxiv_id(text)
        identity = arxiv_page(paper) if paper else text
        yield Entry(replace(wanted, source=identity), weight=_TYPICAL_SIZE)
        return
    try:
        path = Path(text).expanduser().resolve()
        if path.is_dir():
            yield from _below(path, wanted)
        elif path.is_file():
            yield _file(path, wanted)
        elif path.exists():
            yield Entry(replace(wanted, source=str(path)), failure="it is neither a file nor a folder")
        elif paper := arxiv_id(text):
            yield Entry(replace(wanted, source=arxiv_page(paper)), weight=_TYPICAL_SIZE)
        elif text.lower().startswith("arxiv:"):
            yield Entry(wanted, failure="it is no arXiv identifier; write it like arXiv:2506.20807")
        else:
            yield Entry(replace(wanted, source=str(path)), failure="there is no such file or folder")
    except (OSError, RuntimeError, ValueError) as error:
        # A loop of links, an unknown ~user, a null character.
        yield Entry(wanted, failure=f"it cannot be found: {error}")


def _as_text(name: str) -> str:
    """A name that can be stored and shown: bytes of a file's name that are not UTF-8 are spelled out."""
    return name.encode(errors="backslashreplace").decode()


def _file(path: Path, wanted: Wanted) -> Entry:
    name = str(path.absolute())
    if (shown := _as_text(name)) != name:
        return Entry(replace(wanted, source=shown), failure=_NO_TEXT)
    try:
        weight = path.stat().st_size
    except OSError:
        weight = 0  # reading it will say what is wrong
    return Entry(replace(wanted, source=name), path, weight=weight)


def _below(folder: Path, wanted: Wanted) -> Iterator[Entry]:
    """All files below a folder but hidden ones and those a build leaves."""
    problems: list[OSError] = []
    found = False
    for parent, folders, names in os.walk(folder, onerror=problems.append):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        )
        for name in sorted(names):
            if not name.startswith("."):
                found = True
                yield _file(Path(parent) / name, wanted)
    for problem in problems:
        found = True
        reason = f"it cannot be read: {(problem.strerror or 'unknown').lower()}"
        yield Entry(replace(wanted, source=_as_text(str(problem.filename))), failure=reason)
    if not found:
        yield Entry(replace(wanted, source=_as_text(str(folder))), failure="the folder holds no files")
