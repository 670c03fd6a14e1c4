"""What the knowledge base costs beside the embedding model, and what a hundred kills leave of it.

Adding 20,000 passages and one document more, with vectors that cost nothing; real documents with the offline
model, split into embedding and everything else; an adding process killed a hundred times. All times in
seconds of the clock, with the CPU's beside them, which a busy machine does not change as much.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))

from killing import kill_adds

from kernel_scientist.knowledge import KnowledgeBase
from kernel_scientist.knowledge.library import library_notes

PASSAGES, KILLS, REPEATS = 20_000, 100, 5
PER_DOCUMENT = 200
_Result = TypeVar("_Result")


class RandomEmbedder:
    """Vectors of the offline model's size that cost next to nothing."""

    name, dimensions = "random-384", 384

    def __init__(self) -> None:
        self._generator = np.random.default_rng(0)

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        rows = self._generator.standard_normal((len(texts), self.dimensions), np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main() -> None:
    for measure in (_adding, _notes, _kills):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder))


def _adding(folder: Path) -> None:
    papers = folder / "papers"
    papers.mkdir()
    for i in range(PASSAGES // PER_DOCUMENT):
        _paper(papers / f"paper{i:03}.md", i, PER_DOCUMENT)
    with KnowledgeBase.open(folder / "base", embedder=RandomEmbedder(), library=False) as base:
        report, wall, cpu = _timed(lambda: base.add(papers))
        ours, count = wall - report.embedding_s, base.status().chunks
        print(f"adding {count:,} passages, beyond embedding     {ours:8.1f} s (CPU {cpu:.1f} s)")
        print(f"  a passage                                  {1000 * ours / count:8.2f} ms")
        spent = [_one_more(base, folder / f"one{i}.md", i) for i in range(REPEATS)]
        middle = statistics.median(spent)
        print(f"one document of 50 passages more, median     {middle:8.2f} s ", end="")
        print(f"({min(spent):.2f} to {max(spent):.2f} of {REPEATS})")
        for name, call in (
            ("removing it", lambda: base.remove("one0")),
            ("rebuilding the index", base.rebuild),
        ):
            _, wall, cpu = _timed(call)
            print(f"{name:44} {wall:8.2f} s (CPU {cpu:.1f} s)")


def _one_more(base: KnowledgeBase, path: Path, number: int) -> float:
    _paper(path, 1000 + number, 50)
    report, wall, _ = _timed(lambda: base.add(path))
    assert report.count("added") == 1
    return wall - report.embedding_s


def _notes(folder: Path) -> None:
    """The bundled notes added as a user's own, so that the offline model has to embed them."""
    with KnowledgeBase.open(folder / "base", library=False) as base:
        base.require_embedder()  # loading the model is neither
        report, wall, cpu = _timed(lambda: base.add(*library_notes()))
        passages, ours = sum(item.chunks for item in report.items), wall - report.embedding_s
    print(f"{passages:,} passages of real notes, offline model   {wall:8.1f} s (CPU {cpu:.1f} s)")
    print(
        f"  of it embedding                            {report.embedding_s:8.1f} s, everything else ", end=""
    )
    print(f"{ours:.1f} s = {100 * ours / wall:.0f} %")


def _paper(path: Path, number: int, passages: int) -> None:
    texts = (f"paper{number} part{j} on tiles, banks and waves. " * 12 for j in range(passages))
    parts = (f"## Part {j}\n\n{text}" for j, text in enumerate(texts))
    path.write_text(f"# Paper {number}\n\n" + "\n\n".join(parts) + "\n")


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float, float]:
    """What it returns, and the seconds of the clock and of the CPU."""
    began, used = time.perf_counter(), time.process_time()
    return call(), time.perf_counter() - began, time.process_time() - used


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
