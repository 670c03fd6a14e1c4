"""The values that leave this package: documents, passages and their citations, reports of what was added."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from .languages import Language

__all__ = [
    "AddItem",
    "AddProgress",
    "AddReport",
    "AddStatus",
    "Citation",
    "Document",
    "DocumentKind",
    "Failure",
    "KnowledgeStatus",
    "Match",
    "Passage",
    "Reason",
    "Source",
]

DocumentKind = Literal["literature", "experience"]
AddStatus = Literal["added", "unchanged", "replaced", "failed"]
Match = Literal["lexical", "vector", "both"]
Reason = Literal["identifier", "words", "meaning"]


@dataclass(frozen=True, slots=True)
class Source:
    """A public source that a document names; `id` is its mark in the text, as in ``[s1]``."""

    id: str
    title: str
    url: str
    looked_up: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a passage is from.

    `source` is the URLs that the passage itself cites, separated by spaces, else the document's own file;
    `looked_up` is the earliest ISO date among them; `page` counts from 1. `authors` and `year` are the
    document's, where they are known.
    """

    title: str
    section: str
    page: int | None
    source: str
    looked_up: str | None = None
    sources: tuple[Source, ...] = ()
    authors: tuple[str, ...] = ()
    year: int | None = None

    def __str__(self) -> str:
        work = f"{self.title}{self._published()}"
        place = f"{work} > {self.section}" if self.section else work
        page = f", p. {self.page}" if self.page is not None else ""
        looked_up = f" (looked up {self.looked_up})" if self.looked_up else ""
        return f"{place}{page}; {self.source}{looked_up}"

    def _published(self) -> str:
        first = self.authors[0] + (" et al." if len(self.authors) > 2 else "") if self.authors else ""
        names = " and ".join(self.authors) if len(self.authors) == 2 else first
        known = ", ".join(part for part in (names, str(self.year or "")) if part)
        return f" ({known})" if known else ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document as an answer; `id` is stable ("lds-banks#2"), `score` between 0 and 1.

    `reasons` says why it matched: it holds an identifier of the query, shares its words, or is near in
    meaning.
    `repeats` names passages left out because they say nearly the same.
    """

    id: str
    document_id: str
    text: str
    citation: Citation
    score: float
    matched: Match
    kind: DocumentKind
    tokens: int = 0
    repeats: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the knowledge base; `bundled` ones came with the package.

    `source` is the file or address it was read from, `origin` where it was published when that is another.
    `language` is the programming language of one that is source code.
    """

    id: str
    title: str
    kind: DocumentKind
    source: str
    chunks: int
    added_at: datetime
    tags: tuple[str, ...]
    architectures: tuple[str, ...] = ()
    bundled: bool = False
    authors: tuple[str, ...] = ()
    year: int | None = None
    origin: str | None = None
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class AddItem:
    """What became of one document; `reason` says why it failed, what an unchanged one equals, or which
    part of an added one could not be read."""

    source: str
    status: AddStatus
    reason: str = ""
    chunks: int = 0
    document_id: str | None = None
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class AddProgress:
    """`done` of `total` documents are; `item` is the one that just was, `None` while `source` is at work.

    `passages` have been embedded so far, and about `share` of the whole (0 to 1, by size) is done.
    """

    item: AddItem | None
    done: int
    total: int
    source: str = ""
    passages: int = 0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class AddReport:
    """One item for each document that was found, in the order they were read.

    It took `seconds`, `embedding_s` of which the embedding model worked.
    """

    items: tuple[AddItem, ...]
    seconds: float = 0.0
    embedding_s: float = 0.0

    def count(self, status: AddStatus) -> int:
        """How many items have `status`."""
        return sum(item.status == status for item in self.items)

    @property
    def failed(self) -> tuple[AddItem, ...]:
        return tuple(item for item in self.items if item.status == "failed")


@dataclass(frozen=True, slots=True)
class Failure:
    """A source that could not be added, when it was last tried (ISO 8601, UTC), and why."""

    source: str
    reason: str
    tried: str


@dataclass(frozen=True, slots=True)
class KnowledgeStatus:
    """Size and state of a knowledge base; `waiting` vectors are searched one by one until indexed.

    Of the documents `bundled` came with the package and `experience` are runs' findings. `vectors` counts
    them by embedding model. `index` is the folder or the server of the vector index. `damage` says what is
    wrong with the database, empty when nothing is.
    """

    path: str
    documents: int
    chunks: int
    embedder: str
    indexed: int
    waiting: int
    note: str = ""
    bundled: int = 0
    experience: int = 0
    vectors: dict[str, int] = field(default_factory=dict[str, int])
    size_bytes: int = 0
    damage: str = ""
    index: str = ""
