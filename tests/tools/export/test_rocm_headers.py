"""Exported HIP files against ROCm's own headers, host and device code, where they can be downloaded."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.sandbox.toolchain import find_toolchain
from kernel_scientist.tools.export import Provenance, export_hip
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem

from .conftest import system_headers

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
@pytest.mark.parametrize("problem", ["everything", "matmul", "reduce_sum"])
def test_it_compiles_with_rocms_own_headers(
    problem: str, everything: Problem, headers: Headers, tmp_path: Path
) -> None:
    toolchain = find_toolchain("gfx942")
    loaded = everything if problem == "everything" else Problem.load(problem)
    file = tmp_path / "kernel.hip"
    kernel = Kernel.load(loaded.default_kernel)
    file.write_text(
        export_hip(kernel, loaded, Provenance("a test", ("Its speed was not measured.",), "0")).text
    )
    system = system_headers()
    cxx, rest = [one for one in system if "c++" in one], [one for one in system if "c++" not in one]
    folders = [headers.clang / "cuda_wrappers", headers.clang, headers.hip, *cxx, toolchain.include, *rest]
    flags = [
        "-x", "hip", "-std=c++20", "-O3", "-nostdinc", "-nostdinc++", "-nogpulib", "-nogpuinc",
        "-Wall", "-Werror",
        "-Wno-unused-function", "-Wno-unused-const-variable",
        "-D__HIP_PLATFORM_AMD__", "-D__AMDGCN_WAVEFRONT_SIZE=64", "-target", "x86_64-unknown-linux-gnu",
        "--offload-arch=gfx942", "-include", WRAPPER,
        *(word for folder in folders for word in ("-isystem", str(folder))),
    ]  # fmt: skip
    for side, action in (("host", "-c"), ("device", "-S")):
        output = tmp_path / side
        command = [*toolchain.clang, *flags, f"--cuda-{side}-only", action, str(file), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr[:4000]
    assert ".amdhsa_kernel" in (tmp_path / "device").read_text()
