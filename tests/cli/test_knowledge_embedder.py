"""`--embedder` as people type it: another model is refused with a sentence, and taken by `rebuild`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..knowledge.embeddings import KEY, Endpoint, serving
from .conftest import Command


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving() as one:
        one.key = KEY
        yield one


@pytest.mark.slow
def test_a_base_is_embedded_anew_by_an_endpoint_and_read_without_it(
    command: Command, endpoint: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "ring.md").write_text("A quokka ring buffer.\n")
    name = f"openai:hash-64@{endpoint.url}"
    assert command("knowledge", "add", "ring.md").code == 0

    refused = command("knowledge", "search", "quokka", "--embedder", name)
    listed = command("knowledge", "list", env={"KERNEL_SCIENTIST_EMBEDDER": name})
    told = command("knowledge", "status", env={"KERNEL_SCIENTIST_EMBEDDER": name})
    rebuilt = command("knowledge", "rebuild", "--embedder", name, "--json")
    found = command("knowledge", "search", "a quokka ring buffer", "--json")
    endpoint.key = "another"
    wrong = command("knowledge", "search", "quokka", "--json")
    run = command("run", "matmul", "--generations", "1")

    assert refused.code == 2 and f"knowledge rebuild --embedder {name}'." in refused.err
    assert listed.code == 0 and "ring" in listed.out
    assert "model openai:hash-64 is chosen here" in told.err
    assert (rebuilt.code, rebuilt.json["embedder"]) == (0, "openai:hash-64")
    assert {one["id"]: one for one in found.json}["ring#1"]["reasons"] == ["words", "meaning"]
    assert wrong.code == 2 and "refused the key" in wrong.json["error"]["message"]
    assert run.code == 2 and "refused the key" in run.err and not (tmp_path / "runs").exists()
    assert KEY not in wrong.out + wrong.err + run.err


def test_a_model_that_is_none_is_a_usage_error(command: Command, endpoint: Endpoint) -> None:
    done = command("knowledge", "search", "x", "--embedder", "bert")

    assert done.code == 2 and "There is no embedding model 'bert'; give offline" in done.err
