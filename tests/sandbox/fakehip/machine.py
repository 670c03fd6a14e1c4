"""A machine with AMD GPUs, for tests: a folder that ROCM_PATH can name, with runtime library and compiler.

The library runs on the CPU what the compiler put into the code object beside the GPU's own code. Nothing
outside of tests knows it; it is found the way a real one is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernel_scientist.sandbox import cpu_compiler
from kernel_scientist.sandbox.build_cache import BuildCache
from kernel_scientist.sandbox.cpu_compiler import CpuBackend, cpu_includes
from kernel_scientist.sandbox.toolchain import find_toolchain
from kernel_scientist.sandbox.worker_program import host_libraries

__all__ = ["FakeRocm", "build_fake_rocm"]

HERE = Path(__file__).parent
_HEADERS = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")
_DEVICES = 8


class FakeRocm:
    """The folder, and what its devices do: `configure` it, and read in `calls` what they were asked."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def library(self) -> Path:
        return self.root / "lib/libamdhip64.so.6"

    def configure(self, *lines: str, **values: object) -> None:
        """The devices from now on, in processes that start from now on; see fakehip.cpp for the keys."""
        text = "".join(f"{line}\n" for line in (*lines, *(f"{key} {value}" for key, value in values.items())))
        (self.root / "lib/fakehip.conf").write_text(text)

    @contextlib.contextmanager
    def calls(self) -> Iterator[list[str]]:
        """The calls of every process that starts in the block, complete when the block has ended."""
        path = self.root / "lib/fakehip.log"
        os.mkfifo(path, 0o666)
        path.chmod(0o666)
        # Opened for both directions, so that it neither waits for a writer nor ends with the first of them.
        reader, lines = os.open(path, os.O_RDWR), list[str]()
        thread = threading.Thread(target=_drain, args=(reader, lines))
        thread.start()
        try:
            yield lines
        finally:
            path.unlink()
            os.write(reader, b"end of log\n")
            thread.join()
            os.close(reader)


def _drain(reader: int, lines: list[str]) -> None:
    pending = b""
    while True:
        *whole, pending = (pending + os.read(reader, 1 << 16)).split(b"\n")
        for line in whole:
            if line == b"end of log":
                return
            lines.append(line.decode())


def build_fake_rocm(root: Path, environment: Mapping[str, str] = os.environ) -> FakeRocm:
    """Build everything below `root`, with the compiler that comes from pip."""
    zig = _zig()
    lib, tools, fake = root / "lib", root / "lib/llvm/bin", root / "fake"
    for folder in (lib, tools, fake, root / "resource"):
        folder.mkdir(parents=True)
    _place(zig, root / "zig")
    shutil.copytree(zig.parent / "lib/include", root / "resource/include", copy_function=_place)
    _build_library(zig, HERE / "fakehip.cpp", lib / "libamdhip64.so.6")
    (lib / "libamdhip64.so").symlink_to("libamdhip64.so.6")
    for number in range(_DEVICES):
        (lib / f"device-{number}.busy").touch()
    shutil.copy(HERE / "fake_export.h", fake)
    _write_compiler(root, tools)
    return FakeRocm(root)


def add_smi(rocm: FakeRocm) -> None:
    """Install the library that tells clocks and temperatures."""
    _build_library(_zig(), HERE / "fakesmi.cpp", rocm.root / "lib/libamd_smi.so")


def _zig() -> Path:
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "zig"


_IMAGE_ADDRESS = "0x10000000"


def _place(source: str | Path, target: str | Path) -> Any:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _build_library(zig: Path, source: Path, library: Path) -> None:
    folders = [zig.parent / "lib/libc/include" / name for name in _HEADERS] + [zig.parent / "lib/include"]
    includes = [word for folder in folders for word in ("-isystem", str(folder))]
    made = library.with_suffix(".o")
    _run([
        zig, "clang", "-target", "x86_64-linux-gnu", "-std=c++20", "-O2", "-fPIC", "-Wall",
        "-Wextra", "-Werror",
        "-fno-exceptions", "-fno-rtti", "-fno-builtin", "-nostdlibinc", "-nostdinc++", *includes,
        "-c", source, "-o", made,
    ])  # fmt: skip
    system = host_libraries()
    _run([zig, "ld.lld", "-shared", f"-soname={library.name}", made, system.libc, system.libm, "-o", library])
    made.unlink()


def _write_compiler(root: Path, tools: Path) -> None:
    toolchain = find_toolchain("cpu")
    # What the CPU device is built with: private there, and the same here or the test is of something else.
    flags = [*cpu_compiler._COMMON_FLAGS, *cpu_compiler._KERNEL_FLAGS, "-x", "c++"]
    includes = [
        word.replace(str(toolchain.include), str(root / "resource/include"))
        for word in cpu_includes(toolchain)
    ]
    link = [
        "-static",
        "--gc-sections",
        "--no-dependent-libraries",
        "-z",
        "noexecstack",
        "-T",
        str(root / "fake/image.ld"),
    ]
    # Between the heap of an interpreter that is loaded at a fixed address, wherever it lies, and the stacks.
    script = (cpu_compiler.RUNTIME / "image.ld").read_text()
    assert _IMAGE_ADDRESS in script
    (root / "fake/image.ld").write_text(script.replace(_IMAGE_ADDRESS, "0x50000000"))
    runtime = CpuBackend(toolchain, BuildCache(root / "cache"))._runtime()
    shutil.copy(runtime, root / "fake/runtime.o")
    text = (HERE / "clang.sh").read_text()
    for name, value in (
        ("@ROOT@", str(root)),
        ("@X86_FLAGS@", " ".join([*flags, *includes])),
        ("@X86_LINK@", " ".join(link)),
    ):
        text = text.replace(name, value)
    for name, script in (("clang++", text), ("ld.lld", f'#!/bin/sh\nexec {root}/zig ld.lld "$@"\n')):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)


def _run(argv: list[Any]) -> None:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
