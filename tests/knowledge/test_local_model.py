"""A local sentence-transformers model, made here of the package's own parts: small, untrained, but real."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_scientist.knowledge import KnowledgeBase, LocalEmbedder
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

Write = Callable[[str, str | bytes], Path]
INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
# torch and transformers warn of their own affairs.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
wants_package = pytest.mark.skipif(
    not INSTALLED, reason="optional: pip install 'kernel-scientist[sentence-transformers]' (brings torch)"
)
WORDS = ["lds", "tiles", "banks", "waves", "matrix", "core", "query", "passage"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer of one layer with prompts, as the package saves it."""
    transformers: Any = importlib.import_module("transformers")
    package: Any = importlib.import_module("sentence_transformers")
    modules: Any = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    folder = tmp_path_factory.mktemp("models")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS) + 5, max_position_embeddings=64, **sizes)
    transformers.BertModel(config).save_pretrained(folder / "bert")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    layers = [modules.Transformer(str(folder / "bert")), modules.Pooling(16)]
    prompts = {"query": "query ", "document": "passage "}
    package.SentenceTransformer(modules=layers, prompts=prompts, device="cpu").save(str(folder / "tiny"))
    return folder / "tiny"


@wants_package
def test_a_folder_is_a_model_that_gives_unit_vectors_and_reads_questions_as_such(model: Path) -> None:
    embedder = LocalEmbedder(str(model))

    rows = embedder.embed(["lds tiles", "banks of lds", "lds tiles"])

    assert rows.shape == (3, 16) and rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(rows[0], rows[2], atol=1e-6)
    assert not np.allclose(embedder.embed_query("lds tiles"), rows[0])
    assert embedder.embed([]).shape[0] == 0


@wants_package
def test_a_knowledge_base_is_embedded_by_it_from_anywhere(
    model: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    with KnowledgeBase.open(tmp_path / "b", embedder="sentence-transformers:tiny", library=False) as base:
        base.add(write("a.md", "lds tiles\n"), write("b.md", "matrix core\n"))
        name = base.status().embedder
    monkeypatch.chdir(tmp_path)

    with KnowledgeBase.open(tmp_path / "b", library=False) as base:
        assert base.search("lds tiles")[0].matched == "both" and base.status().embedder == name


def test_another_model_in_the_folder_is_another_embedder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1" * 200_000)
    first = LocalEmbedder(str(folder)).name
    shutil.copytree(folder, tmp_path / "elsewhere" / "model")

    assert LocalEmbedder(str(tmp_path / "elsewhere" / "model")).name == first
    (folder / "weights").write_bytes(b"2" * 200_000)
    assert LocalEmbedder(str(folder)).name != first and first.startswith("sentence-transformers:model-")


@pytest.mark.skipif(INSTALLED, reason="the package is there")
def test_without_the_package_the_extra_is_named() -> None:
    with pytest.raises(UnusableEnvironment, match=r"pip install 'kernel-scientist\[sentence-transformers\]'"):
        LocalEmbedder("some/model").embed(["text"])


@wants_package
def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(UsageError, match=r"does not load .* name a folder"):
        LocalEmbedder(str(tmp_path / "empty")).embed(["text"])
