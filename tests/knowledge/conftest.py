"""Knowledge bases to test on: empty with the fake embedder, and the bundled library with the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    """An empty knowledge base."""
    with KnowledgeBase.open(tmp_path / "knowledge", embedder=FakeEmbedder(), library=False) as opened:
        yield opened


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file for adding: its name and content."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / "papers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """The bundled library behind the real embedding model and the real Chroma."""
    with KnowledgeBase.open(tmp_path_factory.mktemp("library")) as opened:
        yield opened
