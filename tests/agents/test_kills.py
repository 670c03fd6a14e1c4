"""Kill -9 at random instants, and a disk that fills up: real processes, real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LINKS = str(HERE.parents[1] / ".links")
SESSION = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from sittings import sit, UNPAID
import resource
from kernel_scientist.agents.cli.entry import run_command
"""


def python(*arguments: str, timeout: float = 110) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        env={**os.environ, "PYTHONPATH": LINKS},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.slow
def test_runs_killed_ten_times_at_random_instants_end_whole() -> None:
    seed = int.from_bytes(os.urandom(4))
    done = python(str(HERE / "sittings.py"), "10", str(seed))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["faults"], report["kills"]) == ([], 10), f"seed {seed}"
