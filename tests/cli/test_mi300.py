"""The commands on a machine with a GPU, which here runs kernels on the CPU."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.agents.cli import main

from ..sandbox.fakehip.machine import FakeRocm
from .conftest import Command
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


@pytest.fixture
def run(scaling: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A short session in this process, where a device that is lost is lost at once."""
    monkeypatch.setattr("kernel_scientist.tools.targets.mi300._RETURN_PAUSES_S", (0.01,))
    monkeypatch.chdir(scaling.parent)
    words = ["--target", "mi300", "--generations", "1", "--experiments", "1", "--seed", "1"]
    return lambda: main(["run", str(scaling), *words])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_session_on_a_gpu_from_start_to_report(
    rocm: FakeRocm, scaling: Path, run: Callable[[], int], capfd: pytest.CaptureFixture[str]
) -> None:
    """Of its two devices the first is lost for good: the other one takes over, and it is said once."""
    rocm.configure("on 0 fail hipInit 100", devices=2)
    with rocm.calls() as log:
        code = run()
    out, err = capfd.readouterr()
    assert code in (0, 3), err
    (folder,) = (scaling.parent / "runs").iterdir()
    info = json.loads((folder / "run.json").read_text())
    assert info["target"] == "mi300"
    assert info["status"] in ("improved", "not_improved")
    assert "of this device's speed of light" in out
    assert "what the MI300 compiler makes of it (gfx942) " in out
    assert "CPU" not in out
    said = "begun anew: AMD Instinct MI300X at 0000:05:00.0 is lost (hipInit says hipErrorNoDevice (100)"
    assert err.count(said) == 1
    assert not [line for line in log if "misuse" in line]
    started = sum("hipInit" in line for line in log)
    assert started == sum("exit blocks=0 events=0 streams=0 modules=0" in line for line in log) > 10
    assert {line.split("device=")[1] for line in log if "hipSetDevice" in line} == {"1 -> 0"}


_NONE_LEFT = (
    "No device is left of 2 for mi300: AMD Instinct MI300X cannot be used: hipInit says hipErrorNoDevice"
)


def test_a_session_that_finds_no_device_left_ends_with_a_sentence(
    rocm: FakeRocm, scaling: Path, run: Callable[[], int], capfd: pytest.CaptureFixture[str]
) -> None:
    rocm.configure("on 0 fail hipInit 100", "on 1 fail hipInit 100", devices=2)
    code = run()
    out, err = capfd.readouterr()
    assert (code, out) == (5, "")
    assert _NONE_LEFT in err.splitlines()[-1]
    assert not list((scaling.parent / "runs").iterdir())


@pytest.mark.slow
def test_a_session_that_loses_its_last_device_keeps_its_record(
    rocm: FakeRocm, scaling: Path, run: Callable[[], int], capfd: pytest.CaptureFixture[str]
) -> None:
    rocm.configure(devices=2)

    def lose_both() -> None:
        while not list(scaling.parent.glob("runs/*/candidates/0001/kernel.hip")) and not over.wait(0.05):
            pass
        rocm.configure("on 0 fail hipInit 100", "on 1 fail hipInit 100", devices=2)

    over = threading.Event()
    thread = threading.Thread(target=lose_both)
    thread.start()
    try:
        code = run()
    finally:
        over.set()
        thread.join()
    out, err = capfd.readouterr()
    assert (code, out) == (5, "")
    assert _NONE_LEFT in err
    assert "Traceback" not in err
    (folder,) = (scaling.parent / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text())["status"] == "failed"
