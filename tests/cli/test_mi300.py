"""The commands on a machine with a GPU, which here runs kernels on the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ..sandbox.fakehip.machine import FakeRocm
from .conftest import Command, entry_point
from .scaling import write_problem


@pytest.fixture
def scaling(tmp_path: Path) -> Path:
    folder = write_problem(tmp_path / "scaling")
    path = folder / "problem.toml"
    path.write_text(path.read_text().replace("[shapes.cpu]", "[shapes.mi300]"))
    return folder


def test_bench_says_which_gpu_and_what_its_times_are(rocm: FakeRocm, command: Command, scaling: Path) -> None:
    done = command("bench", scaling / "start.hip", "--problem", scaling, "--target", "mi300", "--json")
    assert done.code == 0, done.err
    evaluation = done.json["evaluation"]
    assert evaluation["verdict"] == "accepted"
    assert evaluation["target"] == "mi300"
    assert evaluation["device"] == "AMD Instinct MI300X (gfx942, 304 CUs), ROCm runtime 7.0.51831"
    assert "cold caches: 576 MiB" in evaluation["method"]
    assert evaluation["timings"][0]["bound_by"] == "memory"


def test_without_rocm_the_target_is_an_environment_that_lacks_it(
    command: Command, scaling: Path, tmp_path: Path
) -> None:
    if any(Path("/opt").glob("rocm*")):
        pytest.skip("this machine has ROCm")
    arguments = ("bench", scaling / "start.hip", "--problem", scaling, "--target", "mi300")
    done = command(*arguments, env={"ROCM_PATH": str(tmp_path)})
    assert done.code == 5
    assert "No ROCm runtime (libamdhip64.so) was found; install ROCm" in done.err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_session_on_a_gpu_from_start_to_report(rocm: FakeRocm, scaling: Path) -> None:
    rocm.configure(devices=2)
    arguments = ["--target", "mi300", "--generations", "1", "--experiments", "1", "--seed", "1"]
    with rocm.calls() as log:
        done = subprocess.run(
            [*entry_point(), "run", str(scaling), *arguments],
            cwd=scaling.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=590,
        )
    assert done.returncode in (0, 3), done.stderr
    (run,) = (scaling.parent / "runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert info["target"] == "mi300"
    assert info["status"] in ("improved", "not_improved")
    assert "of this device's speed of light" in done.stdout
    assert "what the MI300 compiler makes of it (gfx942) " in done.stdout
    assert "CPU" not in done.stdout
    assert not [line for line in log if "misuse" in line]
    started = sum("hipInit" in line for line in log)
    assert started == sum("exit blocks=0 events=0 streams=0 modules=0" in line for line in log) > 10
