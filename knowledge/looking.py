"""Looking into the store by name: a document, its passages, a section, one passage."""

from __future__ import annotations

from kernel_scientist.sandbox.errors import UsageError

from .naming import find_document, find_passage
from .packing import pack
from .records import Passage
from .store import Store, StoredChunk

__all__ = ["one_passage", "passages_of", "section_of"]


def one_passage(store: Store, passage_id: str) -> Passage:
    """The passage of that id, such as "lds-banks#2". Raises `UsageError` when there is none."""
    number = find_passage(store, passage_id)
    found = store.chunks([number] if number is not None else [])
    if not found:
        raise UsageError(
            f"There is no passage '{passage_id}' in the knowledge base at {store.path.parent}; "
            "ids look like 'lds-banks#2' and come from a search."
        )
    return _asked_for(next(iter(found.values())))


def passages_of(store: Store, name: str) -> list[Passage]:
    """A document's chunks in reading order; `name` as for `find_document`."""
    numbers = store.chunk_numbers(find_document(store, name).id)
    found = store.chunks(numbers)
    return [_asked_for(found[number]) for number in numbers if number in found]


def section_of(store: Store, passage_id: str, max_tokens: int) -> list[Passage]:
    """The passages of the section that `passage_id` is of, in reading order, that one among them.

    Beyond `max_tokens` those from it onwards come first.
    """
    wanted = one_passage(store, passage_id)
    section = wanted.citation.section
    whole = [one for one in passages_of(store, wanted.document_id) if one.citation.section == section]
    position = next((i for i, one in enumerate(whole) if one.id == wanted.id), 0)
    kept = {one.id for one in pack(whole[position:] + whole[:position], max_tokens)}
    return [one for one in whole if one.id in kept]


def _asked_for(chunk: StoredChunk) -> Passage:
    """The passage that is a chunk asked for by its name, not by a query."""
    return Passage(
        chunk.id, chunk.document_id, chunk.text, chunk.citation, 1.0, "lexical", chunk.kind, chunk.tokens
    )
