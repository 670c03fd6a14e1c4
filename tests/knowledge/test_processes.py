"""Several processes at once, and processes that are killed: nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

Write = Callable[[str, str | bytes], Path]
ROOT = Path(__file__).parents[2]
# Prints each document once it is acknowledged; batches of two, so that the index changes on the way.
ADD = """
import sys
from pathlib import Path
from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

folder, papers = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob(sys.argv[3]))
with KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False) as base:
    print("ready", flush=True)
    for i in range(0, len(papers), 2):
        base.add(
            *papers[i : i + 2],
            progress=lambda p: p.item and print(p.item.status, p.item.document_id, flush=True),
        )
"""


def papers(write: Write, stem: str, count: int) -> Path:
    for i in range(count):
        text = "".join(f"## Part {j}\n\n{stem} {i} part {j} of the text\n\n" for j in range(5))
        folder = write(f"{stem}{i:03}.md", f"# {stem} {i}\n\n{text}").parent
    return folder


def start(folder: Path, source: Path, pattern: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ADD, str(folder), str(source), pattern],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".links")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def open_base(folder: Path) -> KnowledgeBase:
    return KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False)


def test_two_processes_add_at_once_while_a_third_reads(tmp_path: Path, write: Write) -> None:
    source = papers(write, "alpha", 6)
    papers(write, "beta", 6)
    with open_base(tmp_path / "k") as reader:
        writers = [start(tmp_path / "k", source, f"{stem}*") for stem in ("alpha", "beta")]
        searches = 0
        while any(writer.poll() is None for writer in writers):
            found = reader.search("alpha 1 part 2", limit=3)
            searches += 1
            assert all(passage.text for passage in found)
            time.sleep(0.02)
        outputs = [writer.communicate(timeout=60) for writer in writers]

        assert [writer.returncode for writer in writers] == [0, 0], outputs
        assert searches > 0
        assert len(reader.documents()) == 12
        assert reader.search("beta 5 part 4", limit=1)[0].document_id.startswith("beta")
        assert reader.status().indexed + reader.status().waiting == 60


@pytest.mark.parametrize("after", [1, 5])
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, write: Write, after: int) -> None:
    source = papers(write, "alpha", 40)
    writer = start(tmp_path / "k", source, "alpha*")
    assert writer.stdout is not None and writer.stderr is not None
    acknowledged: list[str] = []
    for line in writer.stdout:
        status, _, document_id = line.strip().partition(" ")
        if status == "added":
            acknowledged.append(document_id)
        if len(acknowledged) >= after:
            break
    # Somewhere in the middle of embedding, of a transaction or of the index's next version.
    time.sleep(0.013 * after)
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate(timeout=60)
    acknowledged += [line.split()[1] for line in rest.splitlines() if line.startswith("added")]
    assert writer.returncode == -signal.SIGKILL

    with open_base(tmp_path / "k") as base:
        stored = {document.id: document for document in base.documents()}
        assert set(acknowledged) <= set(stored)
        assert all(document.chunks == 5 for document in stored.values())
        last = acknowledged[-1]
        number = int(last.removeprefix("alpha"))
        assert base.search(f"alpha {number} part 3", limit=1)[0].document_id == last
        report = base.add(source)
        assert report.count("failed") == 0 and report.count("unchanged") == len(stored)
        assert (base.status().indexed, base.status().waiting) == (200, 0)


def test_two_processes_open_a_fresh_base_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from kernel_scientist.knowledge import *\n"
        "with KnowledgeBase.open(sys.argv[1], embedder=FakeEmbedder()) as b: print(b.status().documents)"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "k")],
            env={**os.environ, "PYTHONPATH": str(ROOT / ".links")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    results = [process.communicate(timeout=60) for process in both]

    assert [process.returncode for process in both] == [0, 0], results
    assert results[0][0] == results[1][0] and int(results[0][0]) >= 10
