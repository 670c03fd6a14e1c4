"""The knowledge base as the other rooms and users see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.errors import InternalError, KernelScientistError, UsageError
from kernel_scientist.sandbox.files import FileLock, data_home, explained
from kernel_scientist.sandbox.printable import printable

from .adding import add_sources
from .chroma_store import ChromaStoreError
from .embedding import Embedder, OfflineEmbedder
from .index import VectorIndex
from .library import is_current, sync_library
from .packing import pack
from .records import AddProgress, AddReport, Document, DocumentKind, KnowledgeStatus, Passage
from .retrieval import Retriever
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KnowledgeBase"]

_DATABASE = "knowledge.sqlite3"
_LIBRARY_WAIT_S = 300.0
_EMBEDDED_AT_ONCE = 64
_LONGEST_TAG = 100


@final
class KnowledgeBase:
    """A folder of documents to search; several processes may use one, and several threads one object.

    `open` it, and `close` it or use it as a context manager. Methods raise `UsageError` and
    `UnusableEnvironment` with a sentence for the user.
    """

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self.path = path
        self._embedder = embedder
        self._lock = threading.RLock()
        self._store = Store(path / _DATABASE)
        self._index = VectorIndex(path / "index", self._store, embedder.name)
        self._retriever = Retriever(self._store, self._index, embedder.name, self._embed_query)
        self._closed = False

    @classmethod
    def open(
        cls, path: Path | str | None = None, *, embedder: Embedder | None = None, library: bool = True
    ) -> KnowledgeBase:
        """Open the knowledge base in the folder `path` (default: the user's own), made when missing.

        The bundled notes are added on the first time and when they changed, unless `library` is false.
        Documents that another embedder embedded are embedded anew. The first search brings the vector index
        up to date.
        """
        folder = data_home() / "knowledge" if path is None else Path(path).expanduser().absolute()
        base = cls(folder, embedder if embedder is not None else OfflineEmbedder())
        try:
            if library and not is_current(base._store):
                base._sync_library()
            base._embed_missing()
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

    def add(
        self,
        *sources: str | Path,
        tags: Sequence[str] = (),
        progress: Callable[[AddProgress], None] | None = None,
    ) -> AddReport:
        """Add files, and folders with all below them. What fails is in the report and stops nothing.

        An item that `progress` or the report calls added is on disk, whatever happens next. Raises
        `UsageError` for an empty source, and for a tag that is empty or holds hidden characters.
        """
        if any(isinstance(source, str) and not source.strip() for source in sources):
            raise UsageError("A source is empty; name a file or a folder.")
        tags = [checked_tag(tag) for tag in tags]
        with self._using():
            items = add_sources(self._store, self._embedder, sources, tuple(tags), progress)
            if any(item.status in ("added", "replaced") for item in items):
                self._update_index()
        return AddReport(tuple(items))

    def documents(self) -> list[Document]:
        """All documents, in the order they were added."""
        with self._using():
            return self._store.documents()

    def search(
        self,
        query: str,
        *,
        limit: int = 8,
        kind: DocumentKind | None = None,
        tags: Sequence[str] | None = None,
        max_tokens: int | None = None,
    ) -> list[Passage]:
        """At most `limit` passages for `query`, best first; of that kind, and of documents with all those
        tags.

        With `max_tokens` only as many as fit into it with their citations (see `pack`).
        """
        with self._using():
            passages = self._retriever.search(query, limit, kind=kind, tags=tags)
        return passages if max_tokens is None else pack(passages, max_tokens)

    def passage(self, passage_id: str) -> Passage:
        """The passage of that id, such as "lds-banks#2". Raises `UsageError` when there is none."""
        document_id, _, position = passage_id.strip().rpartition("#")
        with self._using():
            number = self._store.chunk_number(document_id, int(position)) if _is_position(position) else None
            found = self._store.chunks([number] if number is not None else [])
        if not found:
            raise UsageError(
                f"There is no passage '{passage_id}' in the knowledge base at {self.path}; "
                "ids look like 'lds-banks#2' and come from a search."
            )
        chunk = next(iter(found.values()))
        return Passage(
            chunk.id, chunk.document_id, chunk.text, chunk.citation, 1.0, "lexical", chunk.kind, chunk.tokens
        )

    def status(self) -> KnowledgeStatus:
        """Sizes, and whether the vector index keeps up."""
        with self._using():
            documents, chunks, _ = self._store.counts(self._embedder.name)
            indexed, waiting = self._index.state()
            return KnowledgeStatus(
                *(str(self.path), documents, chunks, self._embedder.name, indexed, waiting),
                note=self._index.note,
            )

    def rebuild(self) -> None:
        """Make the vector index anew from the database."""
        with self._using():
            self._index.close()
            try:
                self._index.update(afresh=True)
            except ChromaStoreError as error:
                raise InternalError(f"The vector index at {self.path} cannot be made: {error}.") from error

    def _sync_library(self) -> None:
        lock = FileLock(
            self.path / "library.lock", timeout_s=_LIBRARY_WAIT_S, purpose="adding the bundled library"
        )
        with explained("add the bundled library", self.path), lock:
            # Another process may have done it while this one waited.
            if not is_current(self._store):
                sync_library(self._store, self._embedder)

    def _embed_missing(self) -> None:
        missing = self._store.without_vector(self._embedder.name)
        for start in range(0, len(missing), _EMBEDDED_AT_ONCE):
            some = missing[start : start + _EMBEDDED_AT_ONCE]
            vectors = self._embedder.embed([text for _, text in some])
            self._store.add_vectors(self._embedder.name, [number for number, _ in some], vectors)

    def _update_index(self) -> None:
        """The index is derived: that it could not be updated is noted, and a later search makes up for it."""
        try:
            self._index.update()
        except (ChromaStoreError, KernelScientistError, OSError) as error:
            self._index.note = f"the vector index was not brought up to date ({error})"

    def _embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._embedder.embed([text])[0]
        return vector

    def _using(self) -> threading.RLock:
        if self._closed:
            raise InternalError("This knowledge base has been closed.")
        return self._lock


def checked_tag(tag: str) -> str:
    """The tag without blanks round it. Raises `UsageError` for one that could not be read or typed."""
    short = tag.strip()
    if not short:
        raise UsageError("A tag is empty; give a word, or leave it out.")
    if len(short) > _LONGEST_TAG or "\n" in short or "\t" in short or printable(short) != short:
        raise UsageError(
            f"The tag '{printable(short, ' ')[:60]}' holds characters that are not seen, or more than "
            f"{_LONGEST_TAG}; give a short word."
        )
    return short


def _is_position(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
