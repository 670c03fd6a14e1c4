"""The values that leave this package: documents, passages and their citations, reports of what was added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = [
    "AddItem",
    "AddProgress",
    "AddReport",
    "AddStatus",
    "Citation",
    "Document",
    "DocumentKind",
    "KnowledgeStatus",
    "Match",
    "Passage",
    "Source",
]

DocumentKind = Literal["literature", "experience"]
AddStatus = Literal["added", "unchanged", "replaced", "failed"]
Match = Literal["lexical", "vector", "both"]


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
    `looked_up` is the earliest ISO date among them; `page` counts from 1.
    """

    title: str
    section: str
    page: int | None
    source: str
    looked_up: str | None = None
    sources: tuple[Source, ...] = ()

    def __str__(self) -> str:
        place = f"{self.title} > {self.section}" if self.section else self.title
        page = f", p. {self.page}" if self.page is not None else ""
        looked_up = f" (looked up {self.looked_up})" if self.looked_up else ""
        return f"{place}{page}; {self.source}{looked_up}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document as an answer; `id` is stable ("lds-banks#2"), `score` between 0 and 1.

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


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the knowledge base; `bundled` ones came with the package."""

    id: str
    title: str
    kind: DocumentKind
    source: str
    chunks: int
    added_at: datetime
    tags: tuple[str, ...]
    architectures: tuple[str, ...] = ()
    bundled: bool = False


@dataclass(frozen=True, slots=True)
class AddItem:
    """What became of one file; `reason` says why it failed, or what an unchanged one equals."""

    source: str
    status: AddStatus
    reason: str = ""
    chunks: int = 0
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class AddProgress:
    """`item` is done; `done` of `total` files are."""

    item: AddItem
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class AddReport:
    """One item for each file that was found, in the order they were read."""

    items: tuple[AddItem, ...]

    def count(self, status: AddStatus) -> int:
        """How many items have `status`."""
        return sum(item.status == status for item in self.items)

    @property
    def failed(self) -> tuple[AddItem, ...]:
        return tuple(item for item in self.items if item.status == "failed")


@dataclass(frozen=True, slots=True)
class KnowledgeStatus:
    """Size and state of a knowledge base; `waiting` vectors are searched one by one until indexed."""

    path: str
    documents: int
    chunks: int
    embedder: str
    indexed: int
    waiting: int
    note: str = ""
