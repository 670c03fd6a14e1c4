"""The scripts in docs/examples run as they are written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "docs/examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_as_written(script: Path, tmp_path: Path) -> None:
    if "frame" in script.read_text(encoding="utf-8") and importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed")
    done = subprocess.run(
        [sys.executable, "-P", str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=380
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_three_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["literature", "session", "transcripts"]
