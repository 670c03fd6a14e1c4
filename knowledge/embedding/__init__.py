"""Text to vectors: the seam, the model that needs no network, endpoints, local models, and the choice."""

from __future__ import annotations

from .choosing import FORMS, AbsentEmbedder, make_embedder, recipe
from .endpoint import EndpointEmbedder, EndpointSettings
from .local import LocalEmbedder
from .offline import OfflineEmbedder
from .seam import Embedder, FakeEmbedder, QueryEmbedder

__all__ = [
    "FORMS",
    "AbsentEmbedder",
    "Embedder",
    "EndpointEmbedder",
    "EndpointSettings",
    "FakeEmbedder",
    "LocalEmbedder",
    "OfflineEmbedder",
    "QueryEmbedder",
    "make_embedder",
    "recipe",
]
