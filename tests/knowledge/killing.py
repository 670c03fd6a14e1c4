"""Kills a process that adds documents, at random instants, and looks at what it left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

ROOT = Path(__file__).parents[2]
PAPERS, PARTS = 300, 5
# Prints each document once it is acknowledged; few at a time, so that the index changes on the way.
ADD = """
import sys
from pathlib import Path
from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

def say(progress):
    if progress.item is not None:
        print(progress.item.status, progress.item.document_id, flush=True)

folder, papers = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob("*.md"))
with KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False) as base:
    print("ready", flush=True)
    have = {document.source for document in base.documents()}
    papers = [paper for paper in papers if str(paper) not in have]
    for i in range(0, len(papers), 3):
        base.add(*papers[i : i + 3], progress=say)
"""


@dataclass
class Report:
    """What became of the kills."""

    kills: int = 0
    acknowledged: int = 0
    faults: list[str] = field(default_factory=list)


def kill_adds(folder: Path, kills: int, seed: int) -> Report:
    """Kill a process that adds documents `kills` times, each time going on with the same base."""
    generator = random.Random(seed)
    report = Report()
    papers = folder / "papers"
    base, round_ = folder / "base-0", 0
    _write_papers(papers)
    acknowledged: set[str] = set()
    while report.kills < kills:
        # Mostly once it is at work, whatever the machine is busy with; at times while it still begins.
        begun = generator.choice(["ready", "added", "added", "added"])
        killed, said = _killed_add(base, papers, begun, generator.uniform(0.0, 1.0))
        acknowledged |= said
        report.kills += killed
        report.acknowledged += len(said)
        report.faults += [f"kill {report.kills}: {fault}" for fault in _faults(base, acknowledged)]
        if len(acknowledged) == PAPERS:
            round_ += 1
            base, acknowledged = folder / f"base-{round_}", set()
    return report


def _write_papers(folder: Path) -> None:
    folder.mkdir()
    for i in range(PAPERS):
        parts = "".join(f"## Part {j}\n\nunique{i}x{j} of the text\n\n" for j in range(PARTS))
        (folder / f"paper{i:03}.md").write_text(f"# Paper {i}\n\n{parts}")


def _killed_add(base: Path, papers: Path, begun: str, after_s: float) -> tuple[bool, set[str]]:
    """Whether it was killed before it was done, and the documents it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, "-c", ADD, str(base), str(papers)],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".links")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    ready = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if line.startswith(begun):
                ready.set()
        ready.set()

    reader = threading.Thread(target=read)
    reader.start()
    ready.wait(60)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reader.join()
    process.stdout.close()
    said = {line.split()[1] for line in lines if line.startswith("added") and line.endswith("\n")}
    return process.returncode == -signal.SIGKILL, said


def _faults(folder: Path, acknowledged: set[str]) -> list[str]:
    with KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False) as base:
        stored = {document.id: document for document in base.documents()}
        faults = [f"{one} was acknowledged and is gone" for one in sorted(acknowledged - stored.keys())]
        faults += [f"{one.id} has {one.chunks} passages" for one in stored.values() if one.chunks != PARTS]
        status = base.status()
        if status.damage:
            faults.append(status.damage)
        if stored:
            last = max(stored)
            found = base.search(f"unique{int(last.removeprefix('paper'))}x2", limit=1)
            if [passage.document_id for passage in found] != [last]:
                faults.append(f"{last} is not found")
    return faults
