"""Exported HIP files, compiled and linked as HIP programs: they check and time themselves, and find faults.

Their launches take the way of every HIP program, from the fat binary's registration to the kernel, on a
device that runs kernels on the CPU and objects to what a runtime need not accept.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.export import Exported, Provenance, all_vectors, export_hip
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem, list_problems

from ...sandbox.fakehip.machine import FakeRocm
from .conftest import Hipcc

PROVENANCE = Provenance("a test", ("Its speed was not measured. \\",), "0")


def exported(problem: Problem, kernel: Kernel | None = None) -> Exported:
    return export_hip(kernel or Kernel.load(problem.default_kernel), problem, PROVENANCE)


def start(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=100)


def watched(rocm: FakeRocm, program: Path, *arguments: str | Path) -> tuple[int, str, list[str]]:
    """Exit code, output and the calls that the program made, none of which may be a misuse."""
    with rocm.calls() as log:
        done = start(program, *arguments)
    calls = [line.split(maxsplit=1)[1] for line in log]
    assert not [call for call in calls if "misuse" in call]
    return done.returncode, done.stdout + done.stderr, calls


@pytest.fixture(scope="module")
def program(everything: Problem, hipcc: Hipcc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "everything.hip"
    file.write_text(exported(everything).text)
    return hipcc.build(file)


def test_a_plan_that_uses_everything_checks_and_times_itself(program: Path, rocm: FakeRocm) -> None:
    code, said, calls = watched(rocm, program)
    assert code == 0, said
    assert ", device 0: AMD Instinct MI300X (gfx942:sramecc+:xnack-)" in said
    assert "3 of 3 test vectors are right" in said
    for shape in ("rows=64 n=128", "rows=3 n=600"):
        assert re.search(rf"{shape} .* us .* launches\)  cold .* us", said)
    names = [call.split()[0] for call in calls]
    assert names.count("hipMalloc") == names.count("hipFree") > 0
    assert names.count("hipEventCreate") == names.count("hipEventDestroy") > 0
    assert calls[-1] == "exit blocks=0 events=0 streams=0 modules=0"


def test_launches_go_the_way_of_every_hip_program(program: Path, rocm: FakeRocm) -> None:
    code, said, calls = watched(rocm, program, "--check")
    assert code == 0, said
    names = [call.split()[0] for call in calls]
    assert names[0] == "__hipRegisterFatBinary"
    kernels = {call.split()[1] for call in calls if call.startswith("__hipRegisterFunction")}
    assert len(kernels) == 7  # three of each build, and the one that fills workspaces
    launched = [place for place, name in enumerate(names) if name == "hipLaunchKernel"]
    for place in launched:
        assert names[place - 2 : place] == ["__hipPushCallConfiguration", "__hipPopCallConfiguration"]
    used = {calls[place].split()[1] for place in launched}
    for place in launched:
        staged = "3add" in calls[place].split()[1]
        assert calls[place].endswith(f"lds={256 if staged else 0} -> 0")
    assert used < kernels  # a single split needs no gathering
    assert all(any(build in name for name in used) for build in ("build_0", "build_1"))
    assert names[-2:] == ["__hipUnregisterFatBinary", "exit"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("fail hipInit 35", "driver version is insufficient"),
        ("devices 0", "hipGetDevice: no ROCm-capable device is detected"),
        ("arch gfx90a", "launch for rows=1 n=4: no kernel image is available for execution on the device"),
        ("fail hipMalloc 2 1", "hipMalloc: out of memory"),
        ("fail hipLaunchKernel 719 2", "unspecified launch failure"),
        ("fail hipDeviceSynchronize 700", "the kernels: an illegal memory access"),
        ("lose hipMemcpy 2", "hipMemcpy: no ROCm-capable device"),
    ],
)
def test_a_call_that_fails_is_exit_code_2_with_its_name(
    program: Path, rocm: FakeRocm, setting: str, said: str
) -> None:
    rocm.configure(setting)
    code, output, _ = watched(rocm, program, "--check")
    assert code == 2, output
    assert said in output


def test_the_vectors_of_a_file_are_checked_too(
    program: Path, rocm: FakeRocm, everything: Problem, tmp_path: Path
) -> None:
    file = tmp_path / "all.vectors"
    file.write_bytes(all_vectors(everything).data)
    code, said, _ = watched(rocm, program, "--check", "--vectors", file)
    assert code == 0, said
    assert "6 of 6 test vectors are right" in said


def test_a_shape_of_ones_own_is_timed(program: Path, rocm: FakeRocm) -> None:
    code, said, _ = watched(rocm, program, "--time", "--warm", "9", "516")
    assert code == 0, said
    assert "rows=9 n=516" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--time", "--warm", "9", "13"), "rows=9 n=13"),
        (("--time", "1"), "give 2 extents"),
        (("--nonsense",), "is not understood"),
        (("--vectors", "/nowhere/file"), "cannot open /nowhere/file"),
    ],
)
def test_what_cannot_be_run_is_exit_code_2(
    program: Path, rocm: FakeRocm, arguments: tuple[str, ...], said: str
) -> None:
    done = start(program, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_vectors_of_another_problem_are_refused(program: Path, rocm: FakeRocm, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(
        b"kernel-scientist vectors 1 something else, and long enough to be read" * 3
    )
    done = start(program, "--check", "--vectors", tmp_path / "other")
    assert done.returncode == 2
    assert "another problem" in done.stderr


@pytest.mark.slow
def test_a_wrong_kernel_is_exit_code_1(
    everything: Problem, hipcc: Hipcc, rocm: FakeRocm, tmp_path: Path
) -> None:
    """Values that are off by too much at some shapes, elements that are never written at others."""
    text = everything.default_kernel.read_text()
    changes = {
        "[r] - 0.5f) * scale": "[r] - (n < 99 ? 0.6f : 0.5f)) * scale",
        "z[r] = r": "if (r || n < 99) z[r] = r",
    }
    for right, wrong in changes.items():
        assert right in text
        text = text.replace(right, wrong)
    file = tmp_path / "wrong.hip"
    file.write_text(exported(everything, Kernel.parse(text)).text)
    code, said, calls = watched(rocm, hipcc.build(file), "--check")
    assert code == 1, said
    assert "first y[0]: expected" in said
    assert "first z[0]" in said
    assert calls[-1] == "exit blocks=0 events=0 streams=0 modules=0"


def _bundled() -> Iterator[Any]:
    """Every starting kernel of every bundled problem; one of them is not slow."""
    for name in list_problems():
        for kernel in Problem.load(name).kernels:
            slow = (name, kernel) != ("fp8_gemm", "mfma")
            yield pytest.param(name, kernel, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("problem", "kernel"), [*_bundled()])
def test_bundled_kernels_check_themselves(
    problem: str, kernel: str, hipcc: Hipcc, rocm: FakeRocm, tmp_path: Path
) -> None:
    loaded = Problem.load(problem)
    file = tmp_path / f"{problem}.hip"
    file.write_text(exported(loaded, Kernel.load(loaded.kernel_file(kernel))).text)
    extents = [str(extent) for extent in loaded.shapes["cpu"].tests[-1].values()]
    code, said, calls = watched(rocm, hipcc.build(file), "--warm", *extents)
    assert code == 0, said
    assert re.search(r"(\d+) of \1 test vectors are right", said)
    assert "GFLOP/s" in said
    assert calls[-1] == "exit blocks=0 events=0 streams=0 modules=0"


def test_the_file_says_where_it_comes_from_and_keeps_the_kernel(everything: Problem) -> None:
    one = exported(everything)
    assert "a test" in one.text
    assert "Its speed was not measured. /\n" in one.text
    assert "// A licence of its own." in one.text
    assert 'SPLITS = "4 if n > 512 else 1"' in one.text
    assert one.builds == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("__global__ void gather", 'extern "C" __global__ void gather', 'extern "C"'),
        ("#include <hip/hip_fp16.h>", "#include <ks/math.h>\n#include <hip/hip_fp16.h>", "ks/math.h"),
        ("min(rows, 7)", "min(rows, 7) - 1", "must be at least 1"),
        ("#pragma once", "#include </etc/passwd>", "not allowed"),
    ],
)
def test_what_cannot_be_exported_is_refused(everything: Problem, old: str, new: str, said: str) -> None:
    text = everything.default_kernel.read_text()
    assert old in text
    with pytest.raises(PlanError, match=said):
        exported(everything, Kernel.parse(text.replace(old, new)))
