"""Which model a knowledge base is embedded by: chosen, recorded, found to be another one, changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_scientist.knowledge import (
    EndpointEmbedder,
    EndpointSettings,
    FakeEmbedder,
    KnowledgeBase,
    LocalEmbedder,
    OfflineEmbedder,
)
from kernel_scientist.knowledge.embedding import make_embedder, recipe
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from .embeddings import KEY, Endpoint, serving

Write = Callable[[str, str | bytes], Path]
QUICK = EndpointSettings(wait_s=0.0, tries=2)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("KERNEL_SCIENTIST_EMBEDDER", raising=False)
    with serving() as one:
        yield one


def opened(folder: Path, embedder: str | None = None, **more: object) -> KnowledgeBase:
    return KnowledgeBase.open(folder / "base", embedder=embedder, endpoint=QUICK, library=False, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "kind", "again"),
    [
        ("offline", OfflineEmbedder, "offline"),
        ("openai:bge@http://h:1/v1/", EndpointEmbedder, "openai:bge@http://h:1/v1"),
        ("openai:org/m@2", EndpointEmbedder, "openai:org/m@2@https://api.openai.com/v1"),
        ("sentence-transformers:org/name", LocalEmbedder, "sentence-transformers:org/name"),
    ],
)
def test_a_text_names_an_embedder_and_can_be_had_back(text: str, kind: type, again: str) -> None:
    made = make_embedder(text)

    assert isinstance(made, kind) and recipe(made) == again and recipe(make_embedder(again)) == again


@pytest.mark.parametrize(
    "text", ["", "bert", "openai:", "openai:@http://h/v1", "sentence-transformers: ", "offline:x"]
)
def test_another_text_is_a_usage_error_that_names_the_forms(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"give offline, openai:MODEL\[@URL\] or sentence-transformers:MODEL"
    ):
        make_embedder(text)


def test_the_choice_is_recorded_and_holds_without_being_named_again(
    endpoint: Endpoint, tmp_path: Path, write: Write
) -> None:
    with opened(tmp_path, f"openai:hash-64@{endpoint.url}") as base:
        assert base.add(write("tiles.md", "# Tiles\n\nlds tiles\n")).items[0].status == "added"
        assert base.status().embedder == "openai:hash-64"

    with opened(tmp_path) as again:
        assert again.search("lds tiles")[0].matched == "both" and again.note == ""
    assert all(key == f"Bearer {KEY}" for key in endpoint.keys)
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_the_environment_chooses_where_nothing_else_does(
    endpoint: Endpoint, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_EMBEDDER", "openai:hash-64")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    with opened(tmp_path) as base:
        base.add(write("a.md", "text\n"))
        assert base.status().vectors == {"openai:hash-64": 1}
    monkeypatch.delenv("OPENAI_BASE_URL")
    with opened(tmp_path, "openai:hash-64") as base:  # where it was found last
        base.add(write("b.md", "more\n"))
        assert base.status().vectors == {"openai:hash-64": 2}
    monkeypatch.setenv("KERNEL_SCIENTIST_EMBEDDER", "offline")
    with opened(tmp_path, "recorded") as base:
        assert base.status().embedder == "openai:hash-64"


def test_a_base_of_another_model_is_refused_and_embedded_anew_on_demand(
    endpoint: Endpoint, tmp_path: Path, write: Write
) -> None:
    with KnowledgeBase.open(tmp_path / "base", embedder=FakeEmbedder(), library=False) as base:
        base.add(write("tiles.md", "# Tiles\n\nlds tiles\n"))
    chosen, told = f"openai:hash-64@{endpoint.url}", list[tuple[int, int]]()

    with pytest.raises(UsageError, match=rf"by 'fake-hash-64', and .* rebuild --embedder {chosen}'\.$"):
        opened(tmp_path, chosen)
    assert endpoint.requests == []
    with opened(tmp_path, chosen, reembed=True, progress=lambda *done: told.append(done)) as base:
        base.rebuild()
        assert base.status().embedder == "openai:hash-64" and base.status().waiting == 0
        assert base.status().vectors == {"fake-hash-64": 1, "openai:hash-64": 1} and told == [(1, 1)]
    with opened(tmp_path) as base:
        assert base.search("lds tiles")[0].matched == "both"


def test_what_an_endpoint_left_half_done_goes_on_where_it_stopped(
    endpoint: Endpoint, tmp_path: Path, write: Write
) -> None:
    with KnowledgeBase.open(tmp_path / "base", embedder=FakeEmbedder(), library=False) as base:
        base.add(write("many.md", "".join(f"## H{i}\n\ntext {i}\n\n" for i in range(100))))
    chosen = f"openai:hash-64@{endpoint.url}"
    endpoint.good, endpoint.faults = 1, [(500, "broken", {})] * 2

    with pytest.raises(UnusableEnvironment, match="failed 2 times"):
        opened(tmp_path, chosen, reembed=True)
    with opened(tmp_path) as base:  # still the old one's
        assert base.status().embedder == "fake-hash-64"
    endpoint.requests.clear()
    with opened(tmp_path, chosen, reembed=True) as base:
        assert base.status().vectors == {"fake-hash-64": 100, "openai:hash-64": 100}
    assert [len(one["input"]) for one in endpoint.requests] == [1, 36]  # the first asks whether it changed


def test_a_base_of_a_programs_own_embedder_can_be_read_and_says_what_it_lacks(
    tmp_path: Path, write: Write
) -> None:
    with KnowledgeBase.open(tmp_path / "base", embedder=FakeEmbedder(), library=False) as base:
        base.add(write("a.md", "text\n"))

    with opened(tmp_path) as base:
        assert [one.id for one in base.documents()] == ["a"]
        item = base.add(write("b.md", "more\n")).items[0]
    assert item.status == "failed" and "a model of the program that made it" in item.reason


@pytest.mark.parametrize("dimensions", [64, 32])
def test_another_model_under_the_same_name_is_noticed_and_mended(
    endpoint: Endpoint, tmp_path: Path, write: Write, dimensions: int
) -> None:
    chosen = f"openai:hash-64@{endpoint.url}"
    with opened(tmp_path, chosen) as base:
        base.add(write("a.md", "lds tiles\n"), write("b.md", "mfma blocks\n"))
    endpoint.dimensions, endpoint.sign = dimensions, -1.0

    if dimensions != 64:
        with opened(tmp_path) as base, pytest.raises(UsageError, match=r"32 numbers, and in .* they have 64"):
            base.search("lds tiles")
    with opened(tmp_path, reembed=True) as base:
        base.rebuild()
        assert base.search("lds tiles")[0].matched == "both" and base.status().vectors == {
            "openai:hash-64": 2
        }
        _, _, _, rows = base._store.vectors.of("openai:hash-64")
    assert rows.shape == (2, dimensions) and (rows <= 0).all()


def test_an_endpoint_that_is_away_costs_the_meaning_of_a_question_not_the_answer(
    endpoint: Endpoint, tmp_path: Path, write: Write
) -> None:
    with opened(tmp_path, f"openai:hash-64@{endpoint.url}") as base:
        base.add(write("a.md", "lds tiles\n"))
        endpoint.faults = [(503, "away", {})] * 2

        found = base.search("lds tiles")

        assert found[0].matched == "lexical" and "only words were searched" in base.note
        assert "failed 2 times (503: away)" in base.note
        endpoint.faults = [(503, "away", {})] * 2
        assert "503: away" in base.add(write("b.md", "x\n")).failed[0].reason
        assert base.retry().count("added") == 1  # it is back


def test_a_wrong_key_stops_a_search_and_a_session_before_it_begins(
    endpoint: Endpoint, tmp_path: Path, write: Write
) -> None:
    with opened(tmp_path, f"openai:hash-64@{endpoint.url}") as base:
        base.add(write("a.md", "lds tiles\n"))
        endpoint.key = "another"
        for asked in (lambda: base.search("lds"), base.require_embedder):
            with pytest.raises(UsageError, match="refused the key") as caught:
                asked()
            assert KEY not in str(caught.value)


def test_a_base_of_before_models_were_recorded_is_the_model_of_its_vectors(
    tmp_path: Path, write: Write
) -> None:
    with opened(tmp_path, "offline") as base:
        base.add(write("a.md", "lds tiles\n"))
    with sqlite3.connect(tmp_path / "base" / "knowledge.sqlite3") as connection:
        connection.execute("DELETE FROM meta WHERE key LIKE 'embedder%'")
        connection.execute("PRAGMA user_version = 2")
    connection.close()

    with opened(tmp_path) as base:
        assert base.status().embedder == OfflineEmbedder.name
    with pytest.raises(UsageError, match="is embedded by 'all-MiniLM"):
        opened(tmp_path, "openai:hash-64")


def test_a_new_version_of_the_offline_model_embeds_anew_by_itself(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OfflineEmbedder, "name", "all-MiniLM-older")
    with opened(tmp_path) as base:
        base.add(write("a.md", "lds tiles\n"))
    monkeypatch.undo()

    with opened(tmp_path) as base:
        assert (
            base.status().embedder == OfflineEmbedder.name and base.search("lds tiles")[0].matched == "both"
        )


class Prompted:
    """Reads questions in another way than passages."""

    name = "prompted"

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return FakeEmbedder().embed(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = FakeEmbedder().embed([text.removeprefix("query: ")])[0]
        return row


def test_a_question_is_embedded_as_one(tmp_path: Path, write: Write) -> None:
    with KnowledgeBase.open(tmp_path / "b", embedder=Prompted(), library=False) as base:
        base.add(write("a.md", "lds tiles\n"))
        assert base.search("query: lds tiles")[0].matched == "both"
