"""Exported Python: on a device that runs kernels on the CPU it checks and times itself, and finds faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernel_scientist.tools.problem import Problem

from ...cli.conftest import entry_point
from ...sandbox.fakehip.machine import FakeRocm
from .conftest import KERNEL


def run(*argv: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, timeout=110, env=environment
    )


def export(kernel: Path, problem: Problem, output: Path) -> Path:
    """Through the command line: in its own process the compiler is the one of the test's ROCm folder."""
    words = ("--problem", problem.folder, "--language", "python", "--output", output)
    done = run(*entry_point(), "export", kernel, *words)
    assert done.returncode == 0, done.stderr
    return output


def test_it_checks_and_times_itself(everything: Problem, rocm: FakeRocm, tmp_path: Path) -> None:
    program = export(everything.default_kernel, everything, tmp_path / "everything.py")
    with rocm.calls() as calls:
        done = run(sys.executable, program, "--warm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 test vectors are right" in done.stdout
    assert "rows=3 n=600" in done.stdout
    made, freed = (sum(name in call.split() for call in calls) for name in ("hipMalloc", "hipFree"))
    assert made == freed > 0, calls[:5]
    assert sum("hipModuleLoadData" in call for call in calls) == 2
    assert not [call for call in calls if "misuse" in call]
    assert calls[-1].endswith("exit blocks=0 events=0 streams=0 modules=0")


def test_a_wrong_kernel_is_exit_code_1(everything: Problem, rocm: FakeRocm, tmp_path: Path) -> None:
    kernel = tmp_path / "wrong.hip"
    kernel.write_text(KERNEL.replace("z[r] = r +", "if (r) z[r] = r +"))
    done = run(sys.executable, export(kernel, everything, tmp_path / "wrong.py"), "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "WRONG" in done.stdout


def test_without_a_device_it_says_so(everything: Problem, tmp_path: Path) -> None:
    program = export(everything.default_kernel, everything, tmp_path / "everything.py")
    done = run(sys.executable, program, env={"ROCM_PATH": "/nowhere", "HIP_PATH": "/nowhere"})
    if "libamdhip64 was not found" not in done.stderr:
        pytest.skip("this machine has a HIP runtime")
    assert done.returncode == 2


def test_each_shape_has_its_build_and_others_are_refused(
    everything: Problem, rocm: FakeRocm, tmp_path: Path
) -> None:
    program = export(everything.default_kernel, everything, tmp_path / "everything.py")
    for shape in (("9", "512"), ("9", "516")):
        done = run(sys.executable, program, "--time", "--warm", *shape)
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(sys.executable, program, "--time", "--warm", "9", "13")
    assert done.returncode == 2
    assert "n = 13 is outside" in done.stderr


def test_a_kernel_that_does_not_compile_is_refused(everything: Problem, tmp_path: Path) -> None:
    kernel = tmp_path / "broken.hip"
    kernel.write_text(KERNEL.replace("z[r] = r +", "z[r] = nonsense +"))
    words = ("--problem", everything.folder, "--language", "python", "--output", tmp_path / "x.py")
    done = run(*entry_point(), "export", kernel, *words)
    assert done.returncode == 2
    assert "does not compile for gfx942" in done.stderr
    assert not (tmp_path / "x.py").exists()
