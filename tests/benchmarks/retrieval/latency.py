"""How long a query takes at 1,000, 20,000 and 100,000 passages.

The passages are made of sentences of the bundled notes, shuffled, so that words are as common as they are in
documents; their vectors are those of a few hundred centres with noise. Questions are embedded by the real
model. The bases are kept: making the largest takes minutes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_scientist.knowledge import KnowledgeBase, OfflineEmbedder
from kernel_scientist.knowledge.library import library_notes

__all__ = ["SIZES", "print_latency"]

SIZES = (1_000, 20_000, 100_000)
_PER_DOCUMENT = 500
_SENTENCES = 6
_CENTRES = 400
_ASKED = 100
_SENTENCE = re.compile(r"(?<=[.:;])\s+")
# What would be a heading, a table or a block of code in the middle of a made passage.
_MARKUP = re.compile(r"```|^\s*[#|]|\s##")


class _Centred:
    """Vectors near one of a few hundred centres for passages, the real model's for questions."""

    name, dimensions, failed = "centred-384", OfflineEmbedder.dimensions, False

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._centres = self._random.standard_normal((_CENTRES, self.dimensions), np.float32)
        self._model = OfflineEmbedder()
        self.seconds: list[float] = []

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        rows = self._centres[self._random.integers(0, _CENTRES, len(texts))]
        rows = rows + self._random.standard_normal(rows.shape, np.float32)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def embed_query(self, text: str) -> NDArray[np.float32]:
        began = time.perf_counter()
        row: NDArray[np.float32] = self._model.embed([text])[0]
        self.seconds.append(time.perf_counter() - began)
        return row


def print_latency(folder: Path, texts: Sequence[str]) -> None:
    """Make the bases that are missing in `folder`, ask each the same questions, and print the times."""
    random = np.random.default_rng(1)
    asked = [texts[i] for i in random.permutation(len(texts))[:_ASKED]]
    print(
        f"\nquery latency, {len(asked)} questions, ms: whole p50, p95; of it embedding p50, p95; "
        "processor time p50"
    )
    for size in SIZES:
        embedder = _Centred()
        with KnowledgeBase.open(folder / str(size), embedder=embedder, library=False) as base:
            _fill(base, folder / f"{size}-documents", size)
            base.search(asked[0])
            embedder.seconds.clear()
            spent = [_timed(base, text) for text in asked]
            chunks = base.status().chunks
        whole = _percentiles([wall for wall, _ in spent])
        embedding = _percentiles(embedder.seconds)
        processor = _percentiles([used for _, used in spent])[0]
        print(
            f"  {chunks:7,} passages  {whole[0]:7.1f} {whole[1]:7.1f}   {embedding[0]:7.1f} "
            f"{embedding[1]:7.1f}   {processor:7.1f}",
            flush=True,
        )


def _timed(base: KnowledgeBase, text: str) -> tuple[float, float]:
    """Wall time and processor time of all threads."""
    began, used = time.perf_counter(), time.process_time()
    base.search(text)
    return time.perf_counter() - began, time.process_time() - used


def _percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    p50, p95 = np.percentile(np.array(seconds) * 1e3, [50, 95])
    return float(p50), float(p95)


def _fill(base: KnowledgeBase, folder: Path, size: int) -> None:
    """Add as many made documents as are missing; adding one again is free."""
    sentences = [
        sentence
        for note in library_notes()
        for sentence in _SENTENCE.split(note.read_text().rpartition("+++")[2].replace("\n", " "))
        if len(sentence) > 20 and not _MARKUP.search(sentence)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(size // _PER_DOCUMENT):
        path = folder / f"{number:04}.md"
        if not path.exists():
            random = np.random.default_rng(number)
            texts = (
                " ".join(sentences[j] for j in random.integers(0, len(sentences), _SENTENCES))
                for _ in range(_PER_DOCUMENT)
            )
            parts = [f"## Part {i}\n\n{text}" for i, text in enumerate(texts)]
            path.write_text(f"# Made document {number}\n\n" + "\n\n".join(parts) + "\n")
    base.add(folder)
