"""Exported HIP files, compiled for this machine's CPU: they check and time themselves, and find faults."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.export import Exported, Provenance, all_vectors, export_hip
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem

from .conftest import HostBuilder

PROVENANCE = Provenance("a test", ("Its speed was not measured. \\",), "0")


def exported(problem: Problem, kernel: Kernel | None = None) -> Exported:
    return export_hip(kernel or Kernel.load(problem.default_kernel), problem, PROVENANCE)


def start(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def program(everything: Problem, host: HostBuilder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "everything.hip"
    file.write_text(exported(everything).text)
    return host.build(file)


def test_a_plan_that_uses_everything_checks_and_times_itself(program: Path) -> None:
    done = start(program, "--warm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 test vectors are right" in done.stdout
    assert "rows=64 n=128" in done.stdout
    assert "rows=3 n=600" in done.stdout


def test_the_vectors_of_a_file_are_checked_too(program: Path, everything: Problem, tmp_path: Path) -> None:
    file = tmp_path / "all.vectors"
    file.write_bytes(all_vectors(everything).data)
    done = start(program, "--check", "--vectors", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 test vectors are right" in done.stdout


def test_a_shape_of_ones_own_is_timed(program: Path) -> None:
    done = start(program, "--time", "--warm", "9", "516")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows=9 n=516" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--time", "--warm", "9", "13"), "rows=9 n=13"),
        (("--time", "1"), "give 2 extents"),
        (("--nonsense",), "is not understood"),
        (("--vectors", "/nowhere/file"), "cannot open /nowhere/file"),
    ],
)
def test_what_cannot_be_run_is_exit_code_2(program: Path, arguments: tuple[str, ...], said: str) -> None:
    done = start(program, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_vectors_of_another_problem_are_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(
        b"kernel-scientist vectors 1 something else, and long enough to be read" * 3
    )
    done = start(program, "--check", "--vectors", tmp_path / "other")
    assert done.returncode == 2
    assert "another problem" in done.stderr


def test_a_wrong_kernel_is_exit_code_1(everything: Problem, host: HostBuilder, tmp_path: Path) -> None:
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
    done = start(host.build(file), "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "first y[0]: expected" in done.stdout
    assert "first z[0]" in done.stdout


@pytest.mark.parametrize(
    ("problem", "kernel"),
    [("fp8_gemm", "mfma"), pytest.param("reduce_sum", "two_pass", marks=pytest.mark.slow)],
)
def test_bundled_kernels_check_themselves(
    problem: str, kernel: str, host: HostBuilder, tmp_path: Path
) -> None:
    loaded = Problem.load(problem)
    file = tmp_path / f"{problem}.hip"
    file.write_text(exported(loaded, Kernel.load(loaded.kernel_file(kernel))).text)
    done = start(host.build(file), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


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
