"""Plain text: one section; numbered or underlined headings are left to the reader."""

from __future__ import annotations

from pathlib import Path

from .document import LoadedDocument, Section, decode

__all__ = ["load"]

_LONGEST_TITLE = 100


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a text file; its first line is the title when a blank line follows and it reads like one."""
    text = decode(raw).strip("\n")
    first, _, rest = text.partition("\n")
    title = first.strip()
    is_title = 0 < len(title) <= _LONGEST_TITLE and rest.startswith("\n") and title[-1] not in ".,;:"
    return LoadedDocument(title if is_title else Path(name).stem, (Section((), text),))
