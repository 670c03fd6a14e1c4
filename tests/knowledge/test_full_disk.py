"""A disk that fills up while documents are added: below the database, and below the vector index alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALONE = ["unshare", "--mount", "--propagation", "private"]


def can_mount(folder: Path) -> bool:
    """Whether this user may mount a file system that only its own processes see."""
    command = [*ALONE, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("which", ["truth", "index", "files"])
def test_a_disk_that_fills_up_loses_nothing_and_is_told_in_a_sentence(tmp_path: Path, which: str) -> None:
    if which != "files" and not can_mount(tmp_path):
        pytest.skip("no small file system can be mounted here; the limit on files' sizes stands for it")
    command = [sys.executable, "-P", str(HERE / "filling.py"), which, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / ".links")}

    done = subprocess.run(
        command if which == "files" else [*ALONE, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["acknowledged"] and found["kept"] == found["acknowledged"], found
    assert "\n" not in found["said"] and found["found"], found
    assert "space" in found["said"] and found["again"] == ["unchanged", "added"], found
    assert (found["damage"], found["waiting"], found["versions"]) == ("", 0, 1), found
