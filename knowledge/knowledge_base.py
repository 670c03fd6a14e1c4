"""The knowledge base as the other rooms and users see it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import final

from kernel_scientist.sandbox.errors import (
    InternalError,
    KernelScientistError,
    UnusableEnvironment,
    UsageError,
)
from kernel_scientist.sandbox.files import data_home

from .adding import Adder
from .chroma_store import ChromaStoreError
from .embedded import StoreEmbedder, choose_embedder, embed_missing, forget_if_changed, require_same
from .embedding import Embedder, EndpointSettings
from .exchange import export_store, import_file
from .fetching import Limits
from .filters import Filters
from .index import Index, VectorIndex
from .languages import Language
from .looking import one_passage, passages_of, section_of
from .manifest import read_manifest
from .naming import find_document
from .packing import pack
from .records import AddProgress, AddReport, Document, DocumentKind, Failure, KnowledgeStatus, Passage
from .retrieval import Retriever
from .salvage import Salvaged
from .server_index import ServerAddress, ServerIndex
from .sources import Wanted
from .store import Store
from .tags import checked_tag
from .upkeep import bring_library_up_to_date, repair_database, status_of

__all__ = ["KnowledgeBase"]

_DATABASE = "knowledge.sqlite3"
_CHROMA_VARIABLE = "KERNEL_SCIENTIST_CHROMA"


@final
class KnowledgeBase:
    """A folder of documents to search; several processes may use one, and several threads one object.

    `open` it, and `close` it or use it as a context manager. Methods raise `UsageError` and
    `UnusableEnvironment` with a sentence for the user.
    """

    def __init__(self, store: Store, embedder: Embedder, chroma: ServerAddress | None = None) -> None:
        self.path = path = store.path.parent
        self._store = store
        self._embedder = StoreEmbedder(embedder, store)
        self._lock = threading.RLock()
        self._index: Index = (
            VectorIndex(path / "index", store, embedder.name)
            if chroma is None
            else ServerIndex(chroma, path / "index", store, embedder.name)
        )
        self._retriever = Retriever(store, self._index, embedder.name, self._embedder.embed_query)
        self._closed = False

    @classmethod
    def open(
        cls,
        path: Path | str | None = None,
        *,
        embedder: Embedder | str | None = None,
        endpoint: EndpointSettings | None = None,
        library: bool = True,
        chroma: str | None = None,
        reembed: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> KnowledgeBase:
        """Open the knowledge base in the folder `path` (default: the user's own), made when missing.

        The bundled notes are added on the first time and when they changed, unless `library` is false. The
        first search brings the vector index up to date, which is in the same folder, or on the Chroma server
        at the address `chroma` (by default that of KERNEL_SCIENTIST_CHROMA).

        `embedder` is an object, ``offline``, ``openai:MODEL[@URL]``, ``sentence-transformers:MODEL``, or
        ``recorded``; by default that of KERNEL_SCIENTIST_EMBEDDER, else the one that the base was made with,
        else ``offline``. `endpoint` says how an endpoint is called. A base that another model embedded is
        refused with `UsageError`, or with `reembed` embedded anew: `progress` is told how many passages of
        how many are done. Raises `UnusableEnvironment` when no Chroma server answers at `chroma`.
        """
        chroma = chroma or os.environ.get(_CHROMA_VARIABLE)
        address = ServerAddress(chroma) if chroma else None
        if address is not None:
            address.require_answer()
        store = Store(_folder(path) / _DATABASE)
        try:
            base = cls(store, choose_embedder(store, embedder, endpoint), address)
        except BaseException:
            store.close()
            raise
        try:
            if not reembed:
                require_same(store, base._embedder)
            elif forget_if_changed(store, base._embedder.bare):
                base._embedder.forget_length()
            if library:
                bring_library_up_to_date(store, base._embedder)
            embed_missing(store, base._embedder, progress)
        except BaseException:
            base.close()
            raise
        return base

    def close(self) -> None:
        """Let go of the files. Using the object afterwards is an error."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._index.close()
                self._store.close()

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def note(self) -> str:
        """What went wrong last with the vector index or a question's vector; empty when nothing did."""
        return self._index.note

    def add(
        self,
        *sources: str | Path,
        tags: Sequence[str] = (),
        manifest: Path | str | None = None,
        progress: Callable[[AddProgress], None] | None = None,
        limits: Limits | None = None,
    ) -> AddReport:
        """Add files, folders with all below them, addresses and arXiv identifiers, then what a `manifest`
        names. What fails is in the report, stops nothing, and is remembered for `retry`.

        An item that `progress` or the report calls added is on disk, whatever happens next. Raises
        `UsageError` for an empty source, for a manifest that is wrong, and for a tag that is empty or holds
        hidden characters.
        """
        if any(isinstance(source, str) and not source.strip() for source in sources):
            raise UsageError("A source is empty; name a file or a folder.")
        common = tuple(checked_tag(tag) for tag in tags)
        wanted = [Wanted(str(source), common) for source in sources]
        for one in read_manifest(Path(manifest).expanduser()) if manifest is not None else ():
            own = (checked_tag(tag) for tag in one.tags)
            wanted.append(replace(one, tags=tuple(dict.fromkeys((*own, *common)))))
        return self._add(wanted, progress, limits)

    def failures(self) -> list[Failure]:
        """What could not be added, oldest first."""
        with self._using():
            return self._store.failures.all()

    def retry(
        self,
        *sources: str,
        progress: Callable[[AddProgress], None] | None = None,
        limits: Limits | None = None,
    ) -> AddReport:
        """Add what failed before once more, as it was wanted then: these sources, or all when none is named.

        Raises `UsageError` for a source that is not among `failures`.
        """
        with self._using():
            wanted = self._store.failures.wanted(sources)
        return self._add(wanted, progress, limits)

    def forget_failures(self, *sources: str) -> None:
        """Try these failed sources no more; all of them when none is named. Raises `UsageError`."""
        with self._using():
            for wanted in self._store.failures.wanted(sources):
                self._store.failures.forget(wanted.source)

    def _add(
        self,
        wanted: list[Wanted],
        progress: Callable[[AddProgress], None] | None,
        limits: Limits | None,
    ) -> AddReport:
        with self._using():
            began, embedding_s = time.perf_counter(), self._embedder.seconds
            items = Adder(self._store, self._embedder, progress, limits).add(wanted)
            if any(item.status in ("added", "replaced") for item in items):
                self._update_index()
            seconds = time.perf_counter() - began
        return AddReport(tuple(items), seconds, self._embedder.seconds - embedding_s)

    def documents(self) -> list[Document]:
        """All documents, in the order they were added."""
        with self._using():
            return self._store.documents()

    def require_embedder(self) -> None:
        """Embed a word, so that a model that does not work is told before much else is done.

        Raises `UsageError` and `UnusableEnvironment`.
        """
        with self._using():
            self._embedder.embed_query("kernel")

    def search(
        self,
        query: str,
        *,
        limit: int = 8,
        kind: DocumentKind | None = None,
        tags: Sequence[str] | None = None,
        architectures: Sequence[str] | None = None,
        language: Language | None = None,
        max_tokens: int | None = None,
    ) -> list[Passage]:
        """At most `limit` passages for `query`, best first, of the documents that `Filters` of these admits.

        With `max_tokens` only as many as fit into it with their citations (see `pack`). When the embedding
        model is out of reach, words alone are searched, and `note` says so.
        """
        filters = Filters(kind, tuple(tags or ()), tuple(architectures or ()), language)
        with self._using():
            try:
                passages = self._retriever.search(query, limit, filters)
            except UnusableEnvironment as error:
                if not self._embedder.failed:
                    raise
                passages = self._retriever.search(query, limit, filters, meaning=False)
                self._index.note = f"only words were searched, since no vector could be made ({error})"
        return passages if max_tokens is None else pack(passages, max_tokens)

    def passage(self, passage_id: str) -> Passage:
        """The passage of that id, such as "lds-banks#2". Raises `UsageError` when there is none."""
        with self._using():
            return one_passage(self._store, passage_id)

    def document(self, name: str) -> Document:
        """The document of that id, or of an id that only it begins with, or read from that source.

        Raises `UsageError` when there is none.
        """
        with self._using():
            return find_document(self._store, name)

    def passages(self, name: str) -> list[Passage]:
        """A document's chunks in reading order, as the agents see them; `name` as for `document`."""
        with self._using():
            return passages_of(self._store, name)

    def section(self, passage_id: str, *, max_tokens: int = 1500) -> list[Passage]:
        """The passages of the section that `passage_id` is of, in reading order, that one among them.

        Beyond `max_tokens` those from it onwards come first. Raises `UsageError` for an unknown id.
        """
        with self._using():
            return section_of(self._store, passage_id, max_tokens)

    def remove(self, *names: str) -> list[Document]:
        """Forget documents with all their chunks, all of them or none; returns what they were.

        Raises `UsageError` for a name that is none, as for `document`, and for a bundled document.
        """
        with self._using():
            found = [find_document(self._store, name) for name in names]
            documents = list({one.id: one for one in found}.values())
            for document in documents:
                if document.bundled:
                    raise UsageError(
                        f"'{document.id}' is one of the bundled notes, which stay with the program; "
                        "remove only what was added."
                    )
            with self._store.together():
                for document in documents:
                    self._store.remove(document.id)
            if documents:
                self._update_index()
        return documents

    def status(self) -> KnowledgeStatus:
        """Sizes, whether the vector index keeps up, and whether the database is whole, which is looked at."""
        with self._using():
            return status_of(self._store, self._index, self._embedder.name)

    @classmethod
    def repair(cls, path: Path | str | None = None) -> Salvaged | None:
        """Save what can be read of a damaged database; ``None`` when the one at `path` is whole or absent.

        To be called while nobody has the base open. The damaged file is kept beside the new one.
        """
        return repair_database(_folder(path) / _DATABASE)

    def rebuild(self) -> None:
        """Make the vector index anew from the database; `repair` is for a database that is damaged."""
        with self._using():
            self._index.close()
            try:
                self._index.update(afresh=True)
            except ChromaStoreError as error:
                raise InternalError(f"The vector index at {self.path} cannot be made: {error}.") from error

    def export(self, path: Path | str) -> list[Document]:
        """Write all but the bundled documents, with their vectors, as one file; returns them."""
        with self._using():
            return export_store(self._store, Path(path).expanduser())

    def import_(self, path: Path | str, *, replace: bool = False) -> AddReport:
        """Merge a file that `export` wrote, all of it or nothing.

        Content that is here already is `unchanged`, and gains the tags it lacks. A document that differs from
        one here of the same source is `failed`, or with `replace` takes its place. Raises `UsageError`.
        """
        with self._using():
            items = import_file(self._store, Path(path).expanduser(), replace=replace)
            embed_missing(self._store, self._embedder)
            if any(item.status in ("added", "replaced") for item in items):
                self._update_index()
        return AddReport(tuple(items))

    def _update_index(self) -> None:
        """The index is derived: that it could not be updated is noted, and a later search makes up for it."""
        try:
            self._index.update()
        except (ChromaStoreError, KernelScientistError, OSError) as error:
            self._index.note = f"the vector index was not brought up to date ({error})"

    def _using(self) -> threading.RLock:
        if self._closed:
            raise InternalError("This knowledge base has been closed.")
        return self._lock


def _folder(path: Path | str | None) -> Path:
    return data_home() / "knowledge" if path is None else Path(path).expanduser().absolute()
