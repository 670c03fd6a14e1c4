"""An adding process killed at random instants, and three that add at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

from .killing import ADD, ROOT, kill_adds


@pytest.mark.slow
def test_ten_kills_at_random_instants_lose_nothing_acknowledged(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4))

    report = kill_adds(tmp_path, 10, seed)

    assert report.faults == [], f"seed {seed}"
    assert report.kills >= 10 and report.acknowledged > 0


@pytest.mark.slow
def test_three_processes_add_at_once(tmp_path: Path, chroma: str | None) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        for i in range(5):
            (tmp_path / name / f"{name}{i}.md").write_text(f"# {name} {i}\n\nunique{name}{i} text\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".links")}
    if chroma is not None:
        environment["KERNEL_SCIENTIST_CHROMA"] = chroma

    writers = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, str(tmp_path / "base"), str(tmp_path / name)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c")
    ]
    outputs = [writer.communicate(timeout=100) for writer in writers]

    assert [writer.returncode for writer in writers] == [0, 0, 0], outputs
    with KnowledgeBase.open(tmp_path / "base", embedder=FakeEmbedder(), library=False, chroma=chroma) as base:
        assert len(base.documents()) == 15
        for name in ("a0", "b2", "c4"):
            assert base.search(f"unique{name}", limit=1)[0].document_id == name
        assert (base.status().indexed, base.status().waiting, base.status().damage) == (15, 0, "")
