"""From what a user types to the document or passage meant."""

from __future__ import annotations

import difflib
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.printable import printable

from .records import Document
from .store import Store

__all__ = ["find_document", "find_passage"]


def find_document(store: Store, name: str) -> Document:
    """The document of that id, source, or unique beginning of an id. Raises `UsageError`."""
    text = name.strip()
    documents = store.documents()
    for match in (
        [one for one in documents if one.id == text],
        [one for one in documents if one.source in (text, _absolute(text))],
        [one for one in documents if text and one.id.startswith(text)],
    ):
        if len(match) == 1:
            return match[0]
        if match:
            ids = ", ".join(one.id for one in match[:5])
            raise UsageError(
                f"'{_shown(name)}' begins the ids of {len(match)} documents ({ids}); type more of it."
            )
    near = difflib.get_close_matches(text, [one.id for one in documents], n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see 'kernel-scientist knowledge list'."
    raise UsageError(
        f"There is no document '{_shown(name)}' in the knowledge base at {store.path.parent}; {hint}"
    )


def find_passage(store: Store, passage_id: str) -> int | None:
    """The number of the chunk whose id is `passage_id`, such as "lds-banks#2"."""
    document_id, _, position = passage_id.strip().rpartition("#")
    return store.chunk_number(document_id, int(position)) if _is_position(position) else None


def _absolute(text: str) -> str:
    try:
        return str(Path(text).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, an unknown ~user, a null character
        return text


def _is_position(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _shown(name: str) -> str:
    return printable(name, " ")[:80]
