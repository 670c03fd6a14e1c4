"""The README's scripts run as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.agents.cli.app import LazyGroup
from kernel_scientist.agents.cli.reference import command_paths

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# A session takes a minute; what it shows is shown in other tests as well.
SCRIPTS = [
    pytest.param(
        script,
        marks=[pytest.mark.slow] if "Session(" in script else [],
        id=script.splitlines()[0][-30:],
    )
    for script in re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_runs_as_written(script: str, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/banks.md").write_text("# Banks\n\nReading a column meets bank conflicts in LDS.\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_scripts_to_run() -> None:
    assert len(SCRIPTS) >= 2


def test_every_command_of_the_readme_exists() -> None:
    known = dict(command_paths())
    used = re.findall(r"^ .*\bkernel-scientist ([a-z]+) (\S+)", README, re.MULTILINE)
    assert len(used) > 5
    for name, second in used:
        assert (name,) in known
        if isinstance(known[(name,)], LazyGroup):
            assert (name, second) in known


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = {
        name for line in re.findall(r"^    make ([a-z ]+)", README, re.MULTILINE) for name in line.split()
    }
    assert {"run", "test", "lint", "types", "bench"} <= used <= targets
