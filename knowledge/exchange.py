"""Exporting a store's documents, and merging those of an export into a store by their contents' hash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import UsageError

from .chunking import Chunk
from .portable import PortableChunk, PortableDocument, PortableSource, read_portable, write_portable
from .records import AddItem, Document, Source
from .store import Store
from .tokens import count_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["export_store", "import_file"]

_Vectors = dict[str, tuple[list[int], "NDArray[np.float32]"]]


def export_store(store: Store, path: Path) -> list[Document]:
    """Write all documents but the bundled ones to `path`; returns them."""
    documents = store.documents("NOT bundled")
    order = [number for document in documents for number in store.chunk_numbers(document.id)]
    place = {number: i for i, number in enumerate(order)}
    vectors: _Vectors = {}
    for embedder in sorted(store.vectors.embedders()):
        _, chunks, _, rows = store.vectors.of(embedder)
        ours = [i for i, chunk in enumerate(chunks) if chunk in place]
        if ours:
            vectors[embedder] = [place[chunks[i]] for i in ours], rows[ours]
    write_portable(path, _portable(store, documents), vectors)
    return documents


def _portable(store: Store, documents: list[Document]) -> Iterator[PortableDocument]:
    for document in documents:
        numbers = store.chunk_numbers(document.id)
        stored = store.chunks(numbers)
        content = store.content_hash(document.id)
        assert content is not None
        chunks = [
            PortableChunk(
                section=one.citation.section,
                page=one.citation.page,
                text=one.text,
                tokens=one.tokens,
                sources=[
                    PortableSource(
                        mark=source.id, title=source.title, url=source.url, looked_up=source.looked_up
                    )
                    for source in one.citation.sources
                ],
            )
            for one in (stored[number] for number in numbers)
        ]
        yield PortableDocument(
            id=document.id,
            source=document.source,
            title=document.title,
            kind=document.kind,
            content_hash=content,
            added_at=document.added_at.isoformat(timespec="seconds"),
            tags=list(document.tags),
            architectures=list(document.architectures),
            authors=list(document.authors),
            year=document.year,
            origin=document.origin,
            chunks=chunks,
        )


def import_file(store: Store, path: Path, *, replace: bool) -> list[AddItem]:
    """Merge an export into the store, all of it or nothing. Raises `UsageError` for what is no export."""
    documents, vectors = read_portable(path)
    by_chunk: dict[int, list[tuple[str, bytes]]] = {}
    for embedder, (numbers, rows) in vectors.items():
        for number, row in zip(numbers, rows, strict=True):
            by_chunk.setdefault(number, []).append((embedder, row.tobytes()))
    items: list[AddItem] = []
    first = 0
    with store.together():
        for document in documents:
            here = [by_chunk.get(first + i, []) for i in range(len(document.chunks))]
            items.append(_merge(store, document, here, replace))
            first += len(document.chunks)
    return items


def _merge(
    store: Store, document: PortableDocument, vectors: list[list[tuple[str, bytes]]], replace: bool
) -> AddItem:
    same = store.documents("content_hash = ?", document.content_hash)
    if same:
        missing = tuple(tag for tag in document.tags if tag not in same[0].tags)
        if missing:
            store.retag(same[0].id, (*same[0].tags, *missing))
        return AddItem(document.source, "unchanged", "", same[0].chunks, same[0].id)
    other = store.documents("source = ?", document.source)
    if other and other[0].bundled:
        return AddItem(document.source, "failed", "it is a bundled note", 0, other[0].id)
    if other and not replace:
        reason = f"another version of it is here since {other[0].added_at:%Y-%m-%d}; --replace takes this one"
        return AddItem(document.source, "failed", reason, 0, other[0].id)
    if other:
        store.remove(other[0].id)
    chunks = [
        (position, _chunk(chunk), mine)
        for position, (chunk, mine) in enumerate(zip(document.chunks, vectors, strict=True), 1)
    ]
    document_id = store.restore(_row(document), chunks)
    return AddItem(document.source, "replaced" if other else "added", "", len(chunks), document_id)


def _row(document: PortableDocument) -> dict[str, object]:
    try:
        datetime.fromisoformat(document.added_at)
    except ValueError:
        raise UsageError(f"The export says '{document.added_at[:40]!a}' where a date should be.") from None
    row = document.model_dump(exclude={"chunks"})
    lists = {name: json.dumps(row[name]) for name in ("tags", "architectures", "authors")}
    return {**row, **lists, "bundled": 0}


def _chunk(chunk: PortableChunk) -> Chunk:
    sources = tuple(Source(one.mark, one.title, one.url, one.looked_up) for one in chunk.sources)
    return Chunk(chunk.section, chunk.text, chunk.page, count_tokens(chunk.text), sources)
