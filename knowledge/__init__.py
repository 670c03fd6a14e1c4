"""Documents in, cited passages out: load → chunk → embed → store → retrieve.

    with KnowledgeBase.open() as knowledge:
        knowledge.add("papers/")
        for passage in knowledge.search("which instructions read LDS fastest?"):
            print(passage.citation, passage.text)

Importing this package loads neither Chroma nor the embedding model; what needs them imports them.
"""

from __future__ import annotations

from .embedding import (
    Embedder,
    EndpointEmbedder,
    EndpointSettings,
    FakeEmbedder,
    LocalEmbedder,
    OfflineEmbedder,
)
from .fetching import Limits
from .knowledge_base import KnowledgeBase
from .packing import pack
from .records import (
    AddItem,
    AddProgress,
    AddReport,
    Citation,
    Document,
    DocumentKind,
    Failure,
    KnowledgeStatus,
    Passage,
    Source,
)
from .salvage import Salvaged
from .tokens import count_tokens, prepare_tiktoken

__all__ = [
    "AddItem",
    "AddProgress",
    "AddReport",
    "Citation",
    "Document",
    "DocumentKind",
    "Embedder",
    "EndpointEmbedder",
    "EndpointSettings",
    "Failure",
    "FakeEmbedder",
    "KnowledgeBase",
    "KnowledgeStatus",
    "Limits",
    "LocalEmbedder",
    "OfflineEmbedder",
    "Passage",
    "Salvaged",
    "Source",
    "count_tokens",
    "pack",
    "prepare_tiktoken",
]
