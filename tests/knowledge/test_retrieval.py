"""Retrieval over the bundled library, with the real embedding model and the real Chroma."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.knowledge import KnowledgeBase, OfflineEmbedder
from kernel_scientist.knowledge.library import library_notes, missing_vectors

Write = Callable[[str, str | bytes], Path]


def test_every_note_is_there_and_indexed(library: KnowledgeBase) -> None:
    library.search("banks")
    status = library.status()

    assert [d.id for d in library.documents()] == [note.stem for note in library_notes()]
    assert all(d.bundled and d.chunks for d in library.documents())
    assert (status.indexed, status.waiting, status.note) == (status.chunks, 0, "")


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("padding against LDS bank conflicts", "lds-banks"),
        ("how many waves fit on a SIMD with 128 VGPRs?", "registers-and-occupancy"),
        ("which block tile and thread tile for a matmul?", "gemm-tiling"),
        ("MFMA register layout and cycles", "mfma"),
        ("summing an array with wave shuffles", "reductions"),
        ("why do threads that read one column of shared memory wait for each other?", "lds-banks"),
        ("the compiler ran out of fast storage and puts variables in slow memory", "registers-and-occupancy"),
    ],
)
def test_a_question_finds_its_note_among_the_first_three(
    library: KnowledgeBase, query: str, document: str
) -> None:
    assert document in [passage.document_id for passage in library.search(query, limit=3)]


def test_an_exact_identifier_wins(library: KnowledgeBase, tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "k", library=False) as base:
        folder = tmp_path / "isa"
        folder.mkdir()
        names = [
            f"v_mfma_f32_{m}x{m}x{k}_{t}_{t}" for m in (16, 32) for k in (8, 16, 32) for t in ("fp8", "bf8")
        ]
        for name in names:
            (folder / f"{name}.md").write_text(
                f"# {name}\n\nMatrix multiply-add on the matrix core of {name}.\n"
            )
        base.add(folder)

        for wanted in ("v_mfma_f32_32x32x16_fp8_fp8", "__builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8"):
            best = base.search(f"what does {wanted} compute?", limit=3)[0]
            assert wanted.split("mfma_")[1] in best.citation.title


def test_a_question_without_a_common_word_is_found_by_meaning(tmp_path: Path, write: Write) -> None:
    texts = {
        "weather": "Rain is expected in the mountains tomorrow, with strong winds.",
        "cooking": "Simmer the onions in butter until they are golden, then add stock.",
        "physics": "Particles attract one another with a force that falls with distance.",
    }
    with KnowledgeBase.open(tmp_path / "k", library=False) as base:
        base.add(*(write(f"{name}.txt", text) for name, text in texts.items()))

        best = base.search("preparing soup for dinner", limit=1)[0]

    assert (best.document_id, best.matched) == ("cooking", "vector")


def test_near_duplicates_are_merged_and_no_document_crowds_out_the_others(
    base: KnowledgeBase, write: Write
) -> None:
    text = "Padding each row of the tile by one word removes the conflicts of the banks in a column read."
    base.add(write("one.md", text + "\n"), write("two.md", text + " Really.\n"))
    base.add(write("long.md", "".join(f"## Part {i}\n\nbanks, part {i}, say {i * 7}\n\n" for i in range(9))))
    base.add(write("other.md", "Of banks only this is said here, in a sentence of some length.\n"))

    found = base.search("padding conflicts banks", limit=5)

    documents = [passage.document_id for passage in found]
    assert len({"one", "two"} & set(documents)) == 1
    assert any(passage.repeats in (("two#1",), ("one#1",)) for passage in found)
    assert documents.count("long") <= 3 and "other" in documents


def test_scores_fall_and_stay_between_0_and_1(library: KnowledgeBase) -> None:
    scores = [passage.score for passage in library.search("ds_read_b128 in LDS", limit=8)]

    assert len(scores) == 8
    assert all(0 < score <= 1 for score in scores)


def test_the_vectors_that_ship_are_those_of_the_notes() -> None:
    embedder = OfflineEmbedder()
    # If this fails, a note has changed: python -m kernel_scientist.knowledge.precompute
    assert missing_vectors(embedder) == 0


def test_shipped_vectors_are_what_the_model_gives(library: KnowledgeBase) -> None:
    _, chunks, _, rows = library._store.vectors.of(OfflineEmbedder.name, limit=2)
    texts = [
        library._store._database.row("SELECT embedded FROM chunks WHERE number = ?", number) or ("",)
        for number in chunks
    ]

    fresh = OfflineEmbedder().embed([str(text[0]) for text in texts])

    # int8 kernels differ a little from one CPU to another.
    assert np.all((fresh * rows).sum(axis=1) > 0.98)


def test_the_offline_embedder_gives_unit_vectors_that_do_not_depend_on_their_neighbours() -> None:
    embedder = OfflineEmbedder()
    texts = ["shared memory", "", "x " * 2000]

    together = embedder.embed(texts)

    assert together.shape == (3, embedder.dimensions) and embedder.embed([]).shape == (0, embedder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(embedder.embed(texts[:1])[0], together[0])
