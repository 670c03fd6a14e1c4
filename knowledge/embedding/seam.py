"""The seam between the knowledge base and what turns text into vectors, and a fake for tests."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "FakeEmbedder", "QueryEmbedder"]


class Embedder(Protocol):
    """Turns texts into unit vectors; two embedders of one `name` must give the same vectors.

    Making one loads and asks nothing, so that a base can be read whose model is away. Raises `UsageError` and
    `UnusableEnvironment` when it embeds.
    """

    @property
    def name(self) -> str: ...

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """An array of shape (len(texts), dimensions) whose rows have length 1."""
        ...


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder whose model reads questions in another way than passages."""

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        ...


@final
class FakeEmbedder:
    """A fake for tests: each word is hashed to one dimension. Knows no meaning, only shared words."""

    name = "fake-hash-64"
    dimensions = 64

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dimensions] += 1
            length = float(np.linalg.norm(row))
            row[:] = row / length if length else self.dimensions**-0.5
        return vectors
