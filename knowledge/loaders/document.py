"""What a loader makes of a file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..records import DocumentKind, Source

__all__ = ["LoadError", "LoadedDocument", "Section", "decode", "is_list", "require_text"]

_CONTROL_SHARE = 0.02


class LoadError(Exception):
    """A file that cannot be read as a document; the message says why, without naming the file."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text under its headings, outermost first; `page` counts from 1.

    A `verbatim` section is code: it is cut between lines only. Of a section over several pages `page_starts`
    has the offset in `text` at which each of them starts.
    """

    path: tuple[str, ...]
    text: str
    page: int | None = None
    verbatim: bool = False
    page_starts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """A document as its loader read it, in reading order; `note` says what of it could not be read."""

    title: str
    sections: tuple[Section, ...]
    kind: DocumentKind = "literature"
    tags: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    authors: tuple[str, ...] = ()
    year: int | None = None
    origin: str | None = None
    pages: int | None = None
    note: str = ""


def decode(raw: bytes) -> str:
    """`raw` as text with ``\\n`` line ends. Raises `LoadError` for empty and binary files."""
    if not raw.strip():
        raise LoadError("the file is empty")
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = raw.decode("utf-16", errors="replace")
    elif b"\0" in raw:
        raise LoadError("not a document type we read (binary); convert it to Markdown or plain text")
    else:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            # Every byte is a character in Latin-1, so what this yields still has to look like text.
            text = raw.decode("latin-1")
    require_text(text)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def require_text(text: str) -> None:
    """Raise `LoadError` for what some encoding made of bytes that are no text."""
    controls = sum(not (character.isprintable() or character in "\n\r\t\f") for character in text[:20000])
    if controls > _CONTROL_SHARE * min(len(text), 20000):
        raise LoadError("not a document type we read (binary); convert it to Markdown or plain text")


def is_list(value: object) -> TypeGuard[list[Any]]:
    """`isinstance`, for values of unknown type: the type checkers disagree about what it leaves."""
    return isinstance(value, list)
