"""Exported HIP files with ROCm's own headers, host and device code, where they can be downloaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.sandbox.toolchain import find_toolchain
from kernel_scientist.tools.export import Provenance, export_hip
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem

from ...sandbox.fakehip.machine import FakeRocm
from .conftest import Hipcc

# ROCm's headers (HIP 5.2), and clang's for HIP, which the compiler from pip is without: 0.9 MB together.
PACKAGES = ("libamdhip64-dev", "libclang-common-19-dev")
WRAPPER = "__clang_hip_runtime_wrapper.h"


@dataclass(frozen=True)
class Headers:
    """Folders with hip/hip_runtime.h and with clang's wrapper round it."""

    hip: Path
    clang: Path


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Headers:
    """The packages' headers, downloaded and unpacked into the test's own folder; nothing is installed."""
    folder = tmp_path_factory.mktemp("rocm_headers")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("this is no Debian, whose packages have ROCm's headers")
    for package in PACKAGES:
        done = subprocess.run(
            ["apt-get", "download", package], cwd=folder, capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            pytest.skip(f"{package} cannot be downloaded: {done.stderr.strip()[-200:]}")
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True, timeout=60)
    hip, clang = next(folder.rglob("hip/hip_runtime.h")), next(folder.rglob(WRAPPER))
    # Of clang's own headers only those for HIP: the rest must be the compiler's.
    place = folder / "wrapper"
    place.mkdir()
    for header in clang.parent.glob("__clang_*"):
        if "hip" in header.name or "cuda_math" in header.name or "cuda_complex" in header.name:
            shutil.copy(header, place)
    shutil.copytree(clang.parent / "cuda_wrappers", place / "cuda_wrappers")
    return Headers(hip.parent.parent, place)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["everything", "matmul"])
def test_it_compiles_and_runs_with_rocms_own_headers(
    name: str, everything: Problem, headers: Headers, hipcc: Hipcc, rocm: FakeRocm, tmp_path: Path
) -> None:
    problem = everything if name == "everything" else Problem.load(name)
    file = tmp_path / "kernel.hip"
    kernel = Kernel.load(problem.default_kernel)
    provenance = Provenance("a test", ("Its speed was not measured.",), "0")
    file.write_text(export_hip(kernel, problem, provenance).text)
    system, clang = system_headers(), find_toolchain("gfx942").include
    cxx, rest = [one for one in system if "c++" in one], [one for one in system if "c++" not in one]
    folders = [headers.clang / "cuda_wrappers", headers.clang, headers.hip, *cxx, clang, *rest]
    program = hipcc.build(
        file, "-nostdinc", "-nostdinc++", "-Wall", "-Werror",
        "-Wno-unused-function", "-Wno-unused-const-variable",
        "-D__HIP_PLATFORM_AMD__", "-D__AMDGCN_WAVEFRONT_SIZE=64", "-include", WRAPPER,
        *(word for folder in folders for word in ("-isystem", str(folder))),
    )  # fmt: skip
    with rocm.calls() as log:
        done = subprocess.run([program, "--check"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "AMD Instinct MI300X (gfx942:sramecc+:xnack-)" in done.stdout
    assert not [line for line in log if "misuse" in line]
    assert log[-1].endswith("exit blocks=0 events=0 streams=0 modules=0")


def system_headers() -> list[str]:
    """Where the C++ compiler of this machine looks for headers, its own left out."""
    command = ["g++", "-v", "-E", "-x", "c++", os.devnull]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    listed = r"#include <\.\.\.> search starts here:\n(.*?)End of search"
    found = re.search(listed, asked.stderr, re.DOTALL)
    assert found is not None, asked.stderr
    return [line.strip() for line in found[1].splitlines() if "/gcc/" not in line]
