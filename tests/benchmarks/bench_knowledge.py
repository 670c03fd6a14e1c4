"""What the knowledge base costs beyond embedding at 20,000 passages, and what a hundred kills leave of it."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))

from killing import kill_adds

from kernel_scientist.knowledge import KnowledgeBase

PASSAGES, KILLS, REPEATS = 20_000, 100, 5
PER_DOCUMENT = 200


class RandomEmbedder:
    """Vectors of the offline model's size that cost nothing, and the time spent on them."""

    name, dimensions = "random-384", 384

    def __init__(self) -> None:
        self.seconds = 0.0
        self._generator = np.random.default_rng(0)

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        began = time.perf_counter()
        rows = self._generator.standard_normal((len(texts), self.dimensions), np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - began
        return rows


def main() -> None:
    """Print the time to add one document to 20,000 passages, then kill an adding process 100 times."""
    with tempfile.TemporaryDirectory() as folder:
        _adding(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        _kills(Path(folder))


def _adding(folder: Path) -> None:
    embedder = RandomEmbedder()
    papers = folder / "papers"
    papers.mkdir()
    for i in range(PASSAGES // PER_DOCUMENT):
        _paper(papers / f"paper{i:03}.md", i, PER_DOCUMENT)
    with KnowledgeBase.open(folder / "base", embedder=embedder, library=False) as base:
        began = time.perf_counter()
        base.add(papers)
        print(f"adding {base.status().chunks:,} passages, all beyond embedding  {_since(began, 0.0):6.1f} s")
        spent: list[float] = []
        for i in range(REPEATS):
            path = folder / f"one{i}.md"
            _paper(path, 1000 + i, 50)
            embedder.seconds, began = 0.0, time.perf_counter()
            base.add(path)
            spent.append(_since(began, embedder.seconds))
        print(f"one document of 50 passages more, median          {statistics.median(spent):9.2f} s")
        print(f"  least and most of {REPEATS}                       {min(spent):9.2f} to {max(spent):.2f} s")
        began = time.perf_counter()
        base.remove("one0")
        print(f"removing it                                       {_since(began, 0.0):9.2f} s")
        began = time.perf_counter()
        base.rebuild()
        print(f"rebuilding the vector index                       {_since(began, 0.0):9.2f} s")


def _paper(path: Path, number: int, passages: int) -> None:
    texts = (f"paper{number} part{j} on tiles, banks and waves. " * 12 for j in range(passages))
    parts = (f"## Part {j}\n\n{text}" for j, text in enumerate(texts))
    path.write_text(f"# Paper {number}\n\n" + "\n\n".join(parts) + "\n")


def _since(began: float, embedding: float) -> float:
    return time.perf_counter() - began - embedding


def _kills(folder: Path) -> None:
    seed = int.from_bytes(os.urandom(4))
    report = kill_adds(folder, KILLS, seed)
    print(f"{report.kills} kills of an adding process at random instants (seed {seed}):")
    print(f"  documents acknowledged {report.acknowledged}, faults {len(report.faults)}")
    for fault in report.faults:
        print(f"  wrong: {fault}")
    if report.faults:
        raise AssertionError(f"{len(report.faults)} faults")


if __name__ == "__main__":
    main()
