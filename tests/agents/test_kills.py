"""Kill -9 at random instants, and a disk that fills up: real processes, real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.agents import Run, list_runs
from kernel_scientist.agents import events as ev

HERE = Path(__file__).parent
LINKS = str(HERE.parents[1] / ".links")

# A sitting of the run in a folder; the largest file it may write is given in bytes, 0 for any.
SITTING = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from sittings import sit
from kernel_scientist.sandbox.errors import KernelScientistError
if int(sys.argv[3]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    sit(Path(sys.argv[2]))
except KernelScientistError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
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


def sitting(folder: Path, largest_file: int = 0) -> subprocess.CompletedProcess[str]:
    return python("-c", SITTING, str(HERE), str(folder), str(largest_file))


def goes_on(folder: Path) -> Run:
    """Resume the only run of a folder, now that there is space; every step of it must be done."""
    (run,) = list_runs(folder)
    assert run.info.status in ("failed", "interrupted")
    assert run.damaged_lines == 0, "what did not fit is taken back"
    done = sitting(folder)
    assert done.returncode == 0, done.stderr
    events = list(run.events())
    assert run.info.status == "not_improved"
    assert all(one.finding is not None for one in run.candidates()[1:])
    assert run.info.totals.evaluations == len(run.candidates()) - 1 == 8
    calls = [event for event in events if isinstance(event, ev.ModelCall)]
    assert run.info.totals.model_calls == len(calls)
    assert (folder / "bill").stat().st_size - len(calls) <= 2, "a call in flight in each of two lanes"
    return run


@pytest.mark.parametrize("largest", [60_000, 130_000])
@pytest.mark.slow
def test_a_record_that_may_not_grow_ends_with_a_sentence_and_goes_on_later(
    tmp_path: Path, largest: int
) -> None:
    stopped = sitting(tmp_path, largest)
    assert stopped.returncode == 5, stopped.stderr
    assert "events.jsonl would be larger than files may be here" in stopped.stderr
    goes_on(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_ends_a_run_with_a_sentence_and_it_goes_on_when_there_is_space(small_disk: Path) -> None:
    stopped = sitting(small_disk)
    assert stopped.returncode == 5, stopped.stderr
    assert "no space is left" in stopped.stderr
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    goes_on(small_disk)
