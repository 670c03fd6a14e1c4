"""What holds wherever the vector index is, beside the store or on a Chroma server."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.knowledge.server_index import ServerAddress, ServerIndex
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from .conftest import start_chroma

Write = Callable[[str, str | bytes], Path]
WORDS = ["bank", "wave", "tile", "cache", "lane", "spill", "queue", "atom"]


def open_base(folder: Path, chroma: str | None) -> KnowledgeBase:
    return KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False, chroma=chroma)


@pytest.fixture
def base(tmp_path: Path, chroma: str | None) -> Iterator[KnowledgeBase]:
    with open_base(tmp_path / "knowledge", chroma) as opened:
        yield opened


def fill(base: KnowledgeBase, write: Write, count: int = 8) -> None:
    texts = (f"# Doc {i}\n\n{WORDS[i % 8]} {WORDS[i // 8 % 8]} number{i}\n" for i in range(count))
    base.add(*(write(f"doc{i}.md", text) for i, text in enumerate(texts)))


def nearest(base: KnowledgeBase, text: str) -> int:
    return base._index.search(FakeEmbedder().embed([text])[0], 3)[0]


def exact(base: KnowledgeBase, text: str) -> int:
    _, chunks, _, rows = base._store.vectors.of(FakeEmbedder.name)
    return chunks[int(np.argmax(rows @ FakeEmbedder().embed([text])[0]))]


def test_it_answers_as_exact_search_does(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 12)

    for text in ("tile number2 wave", "bank number0", "number11 wave cache"):
        assert nearest(base, text) == exact(base, text)
    assert (base.status().indexed, base.status().waiting, base.status().note) == (12, 0, "")


def test_replaced_and_removed_documents_leave_it(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 6)
    base.add(write("doc1.md", "# Doc 1\n\nsomething else entirely\n"))
    base.remove("doc0", "doc5")

    assert (base.status().indexed, base.status().waiting) == (4, 0)
    assert nearest(base, "something else entirely") == exact(base, "something else entirely")
    assert {p.document_id for p in base.search("number0 number5 bank", limit=9)} == {
        "doc1",
        "doc2",
        "doc3",
        "doc4",
    }


def test_filters_hold_in_it(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 4)
    base.add(write("tagged.md", "tile number2\n"), tags=["special"])

    assert [p.document_id for p in base.search("tile number2", tags=["special"])] == ["tagged"]


def test_a_second_process_and_a_reopened_base_find_the_same(
    base: KnowledgeBase, write: Write, chroma: str | None
) -> None:
    fill(base, write, 4)
    with open_base(base.path, chroma) as other:
        assert other.search("number1")[0].id == "doc1#1"
        base.add(write("zebra.md", "zebra\n"))
        other.add(write("horse.md", "horse\n"))
        for one in (base, other):
            assert one.search("zebra", limit=1)[0].document_id == "zebra"
            assert one.search("horse", limit=1)[0].document_id == "horse"
            assert (one.status().indexed, one.status().waiting) == (6, 0)


def test_what_an_interrupted_update_left_is_made_up_for(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 4)
    base._store.remove("doc0")  # as if killed before the index was told
    assert exact(base, "bank number0") == nearest(base, "bank number0")

    base.add(write("more.md", "more\n"))

    assert (base.status().indexed, base.status().waiting) == (4, 0)


def test_rebuilding_makes_it_anew(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 5)

    base.rebuild()

    assert (base.status().indexed, base.status().waiting) == (5, 0)
    assert nearest(base, "tile number2") == exact(base, "tile number2")


def test_two_bases_on_one_server_keep_apart(tmp_path: Path, write: Write, chroma_server: str) -> None:
    with open_base(tmp_path / "one", chroma_server) as one, open_base(tmp_path / "two", chroma_server) as two:
        one.add(write("a.md", "zebra\n"))
        two.add(write("b.md", "zebra\n"), write("c.md", "horse\n"))

        assert (one.status().indexed, two.status().indexed) == (1, 2)
        assert [p.document_id for p in one.search("zebra")] == ["a"]


def test_a_server_that_lost_data_is_filled_again(tmp_path: Path, write: Write, chroma_server: str) -> None:
    with open_base(tmp_path / "k", chroma_server) as base:
        fill(base, write, 4)
        assert isinstance(base._index, ServerIndex)
        base._index._connected().delete(sorted(base._store.vectors.numbers(FakeEmbedder.name))[:2])
        base.add(write("more.md", "more\n"))
        assert base.status().indexed == 5

        base._index._connected().empty()

    with open_base(tmp_path / "k", chroma_server) as again:
        assert nearest(again, "tile number2") == exact(again, "tile number2")
        assert (again.status().indexed, again.status().waiting) == (5, 0)


def test_a_server_that_dies_costs_time_but_no_answer(tmp_path: Path, write: Write) -> None:
    (tmp_path / "chroma").mkdir()
    server = start_chroma(tmp_path / "chroma")
    with open_base(tmp_path / "k", server.address) as base:
        fill(base, write, 4)
        assert base.search("number2", limit=1)[0].id == "doc2#1"
        server.process.kill()
        server.process.wait()

        assert base.search("number2", limit=1)[0].id == "doc2#1"
        assert base.add(write("more.md", "more\n")).items[0].status == "added"
        assert nearest(base, "more") == exact(base, "more")
        assert "failed" in base.status().note and base.status().waiting == 5

    with pytest.raises(UnusableEnvironment, match=r"No Chroma server answers at http://127.*chroma run"):
        open_base(tmp_path / "k", server.address)
    with open_base(tmp_path / "k", None) as embedded:
        assert embedded.search("more", limit=1)[0].document_id == "more"
        assert embedded.status().waiting == 0


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8000",
        "ftp://x",
        "http://",
        "http://x:99999",
        "http://x/path",
        "http://[",
        "http://x:\x1b",
    ],
)
def test_a_bad_address_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError, match="http://localhost:8000") as caught:
        ServerAddress(address)
    assert "\x1b" not in str(caught.value)


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError) as caught:
        ServerAddress("http://me:secret@x:1")
    assert "secret" not in str(caught.value)


def test_what_answers_must_be_a_chroma_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UnusableEnvironment, match="no Chroma server"):
            ServerAddress(f"http://127.0.0.1:{listener.getsockname()[1]}").require_answer()
        thread.join()


def test_an_older_store_learns_its_identity(tmp_path: Path, write: Write, chroma_server: str) -> None:
    with open_base(tmp_path / "k", None) as base:
        fill(base, write, 2)
    with sqlite3.connect(tmp_path / "k" / "knowledge.sqlite3") as connection:
        connection.execute("DELETE FROM meta WHERE key = 'identity'")
    connection.close()

    with open_base(tmp_path / "k", chroma_server) as served:
        assert served.search("number1", limit=1)[0].id == "doc1#1"
        assert served.status().indexed == 2
