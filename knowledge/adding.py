"""Files and addresses into the store, one by one; a bad one never stops the others."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.errors import KernelScientistError

from .chunking import Chunk, chunk, embedded_text
from .embedding import Embedder
from .fetching import Limits, arxiv_address, arxiv_id, fetch
from .loaders import LoadedDocument, LoadError, parse, read_file
from .records import AddItem, AddProgress
from .sources import About, Entry, Wanted, entries
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Adder", "put_file"]

# Part of the content's hash: a new way of reading or cutting makes every document a changed one.
_CUTTING = b"3"
_EMBEDDED_AT_ONCE = 32
_Embedded = Callable[[int, int], None]


@final
class Adder:
    """Adds what is wanted to a store, and remembers there what failed."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        progress: Callable[[AddProgress], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._progress = progress
        self._limits = limits
        self._items: list[AddItem] = []
        self._total = 0
        self._passages = 0

    def add(self, wanted: Sequence[Wanted]) -> list[AddItem]:
        """Add each document that `wanted` comes to. An item that has been reported is on disk."""
        found = _each_once(entry for one in wanted for entry in entries(one))
        self._total = len(found)
        whole = sum(entry.weight for entry in found) or 1
        before = 0
        for entry in found:
            self._report(None, entry, before / whole)
            item = self._remember(entry, self._add(entry, before / whole, entry.weight / whole))
            self._items.append(item)
            self._passages += item.chunks if item.status in ("added", "replaced") else 0
            before += entry.weight
            self._report(item, entry, before / whole)
        return self._items

    def _add(self, entry: Entry, before: float, share: float) -> AddItem:
        """Add one document; what goes wrong with it is in the item."""
        source = entry.wanted.source
        if entry.failure is not None:
            return AddItem(source, "failed", entry.failure)

        def embedded(done: int, total: int) -> None:
            if done < total:
                self._report(None, entry, before + share * done / total, passages=done)

        try:
            if entry.path is None:
                return self._add_fetched(entry.wanted, embedded)
            name = entry.path.name
            return _put(self._store, self._embedder, read_file(entry.path), name, entry.wanted, embedded)
        except (LoadError, KernelScientistError) as error:
            return AddItem(source, "failed", str(error))
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO).lower()
            return AddItem(source, "failed", f"it cannot be read: {reason}")

    def _add_fetched(self, wanted: Wanted, embedded: _Embedded) -> AddItem:
        paper = arxiv_id(wanted.source)
        fetched = fetch(arxiv_address(paper, "pdf") if paper else wanted.source, self._limits)
        note = ""
        if paper is not None:
            known, note = self._of_paper(paper)
            wanted = replace(wanted, about=_first(wanted.about, known))
        item = _put(self._store, self._embedder, fetched.raw, fetched.name, wanted, embedded)
        return replace(item, reason="; ".join(part for part in (item.reason, note) if part))

    def _of_paper(self, identifier: str) -> tuple[About, str]:
        """What arXiv's page says of a paper, or why it does not: the paper itself is worth more."""
        try:
            page = fetch(arxiv_address(identifier, "abs"), self._limits)
            document = parse(page.raw, page.name)
        except LoadError as error:
            return About(), f"title and authors are from the paper, since its page on arXiv failed: {error}"
        return About(document.title, document.authors, document.year), ""

    def _remember(self, entry: Entry, item: AddItem) -> AddItem:
        """The item; it says so when its failure cannot be remembered, which stops the batch neither."""
        try:
            if item.status == "failed":
                self._store.failures.note(entry.wanted, item.reason)
            else:
                self._store.failures.forget(item.source)
        except KernelScientistError as error:
            return replace(item, reason=f"{item.reason} (not remembered for a retry: {error})".lstrip())
        return item

    def _report(self, item: AddItem | None, entry: Entry, share: float, passages: int = 0) -> None:
        if self._progress is not None:
            done = len(self._items)
            source, passages = entry.wanted.source, self._passages + passages
            self._progress(AddProgress(item, done, self._total, source, passages, share))


def _each_once(found: Iterable[Entry]) -> list[Entry]:
    """Entries by their identity; where two name one document, what is known about it from both."""
    once: dict[str, Entry] = {}
    for entry in found:
        source = entry.wanted.source
        before = once.setdefault(source, entry).wanted
        about = before.about if entry.wanted.about == About() else entry.wanted.about
        tags = tuple(dict.fromkeys((*before.tags, *entry.wanted.tags)))
        once[source] = replace(once[source], wanted=Wanted(source, tags, about))
    return list(once.values())


def put_file(store: Store, embedder: Embedder, path: Path, *, source: str, bundled: bool = False) -> AddItem:
    """Add one file under the identity `source`. Raises `LoadError`, `OSError`, `KernelScientistError`."""
    return _put(store, embedder, read_file(path), path.name, Wanted(source), bundled=bundled)


def _put(
    store: Store,
    embedder: Embedder,
    raw: bytes,
    name: str,
    wanted: Wanted,
    embedded: _Embedded | None = None,
    *,
    bundled: bool = False,
) -> AddItem:
    digest = hashlib.sha256(_CUTTING + raw).hexdigest()
    same = _unchanged(store, digest, wanted)
    if same is not None:
        return same
    document = parse(raw, name)
    if name.endswith(".html"):
        # Pages carry what differs each time they are served; their text says whether they have changed.
        digest = _text_digest(document)
        same = _unchanged(store, digest, wanted)
        if same is not None:
            return same
    document = _known_better(document, wanted.about)
    chunks = chunk(document)
    status, document_id = store.put(
        wanted.source,
        document,
        chunks,
        content_hash=digest,
        name=Path(name).stem,
        tags=wanted.tags,
        bundled=bundled,
        embedder=embedder.name,
        vectors=_vectors(embedder, document.title, chunks, embedded),
    )
    return AddItem(wanted.source, status, document.note, len(chunks), document_id, document.pages)


def _vectors(
    embedder: Embedder, title: str, chunks: list[Chunk], embedded: _Embedded | None
) -> NDArray[np.float32]:
    import numpy as np

    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(chunks), _EMBEDDED_AT_ONCE):
        some = chunks[start : start + _EMBEDDED_AT_ONCE]
        parts.append(embedder.embed([embedded_text(title, piece) for piece in some]))
        if embedded is not None:
            embedded(start + len(some), len(chunks))
    return np.concatenate(parts)


def _text_digest(document: LoadedDocument) -> str:
    digest = hashlib.sha256(_CUTTING + document.title.encode(errors="replace"))
    for section in document.sections:
        digest.update(f"\0{section.path}\0{section.text}".encode(errors="replace"))
    return digest.hexdigest()


def _known_better(document: LoadedDocument, about: About) -> LoadedDocument:
    best = _first(about, About(document.title, document.authors, document.year, document.origin))
    return replace(
        document, title=best.title or document.title, authors=best.authors, year=best.year, origin=best.origin
    )


def _first(about: About, other: About) -> About:
    """What `about` says, and what it leaves open from `other`."""
    return About(
        about.title or other.title,
        about.authors or other.authors,
        about.year or other.year,
        about.origin or other.origin,
    )


def _unchanged(store: Store, digest: str, wanted: Wanted) -> AddItem | None:
    """The item for content that is there already: the source's own or, when it is new, another's."""
    own = store.documents("source = ?", wanted.source)
    same = own or store.documents("content_hash = ?", digest)
    if not same or store.content_hash(same[0].id) != digest:
        return None
    document = same[0]
    known = About(document.title, document.authors, document.year, document.origin)
    if own and _first(wanted.about, known) != known:
        return None
    missing = tuple(tag for tag in wanted.tags if tag not in document.tags)
    if missing:
        store.retag(document.id, (*document.tags, *missing))
    reason = "" if own else f"its content is that of {document.source}"
    return AddItem(wanted.source, "unchanged", reason, document.chunks, document.id)
