"""Knowledge bases to test on: empty with the fake embedder, and the bundled library with the real one."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.knowledge.server_index import ServerAddress
from kernel_scientist.sandbox.errors import UnusableEnvironment


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


@dataclass(frozen=True)
class ChromaServer:
    """A real Chroma server in a process of its own."""

    address: str
    process: subprocess.Popen[bytes]


def start_chroma(folder: Path) -> ChromaServer:
    """Start `chroma run` on a free port and wait until it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The program "chroma" is this function, wherever it is installed.
    code = f"import sys; sys.argv = ['chroma', 'run', '--path', {str(folder)!r}, '--port', '{port}']\n"
    code += "from chromadb.cli.cli import app; app()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = ServerAddress(f"http://127.0.0.1:{port}")
    deadline = time.monotonic() + 60
    while True:
        try:
            address.require_answer()
            return ChromaServer(str(address), process)
        except UnusableEnvironment:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Chroma server that lasts for all tests."""
    server = start_chroma(tmp_path_factory.mktemp("chroma"))
    yield server.address
    server.process.kill()
    server.process.wait()


@pytest.fixture(params=["embedded", "server"])
def chroma(request: pytest.FixtureRequest) -> str | None:
    """Where the vector index is: ``None`` for beside the store, or the address of a server."""
    return None if request.param == "embedded" else str(request.getfixturevalue("chroma_server"))
