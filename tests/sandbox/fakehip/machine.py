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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_scientist.sandbox import cpu_compiler
from kernel_scientist.sandbox.compile_step import INCLUDE
from kernel_scientist.sandbox.toolchain import find_toolchain
from kernel_scientist.sandbox.worker_program import host_libraries

__all__ = ["FakeRocm", "build_fake_rocm"]

HERE = Path(__file__).parent
_HEADERS = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")
_DEVICES = 8
_STACKS = "#define KS_STACKS 0x60000000ul"


class FakeRocm:
    """The folder, and what its devices do: `configure` it, and read in `calls` what they were asked."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def library(self) -> Path:
        return self.root / "lib/libamdhip64.so.6"

    @property
    def hipcc(self) -> Path:
        """Needs g++ with its standard library, as the real one does."""
        return self.root / "bin/hipcc"

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


def build_fake_rocm(root: Path) -> FakeRocm:
    """Build everything below `root`, with the compiler that comes from pip."""
    zig = _zig()
    lib, tools, fake = root / "lib", root / "lib/llvm/bin", root / "fake"
    for folder in (lib, tools, fake, root / "bin", root / "resource"):
        folder.mkdir(parents=True)
    _place(zig, root / "zig")
    shutil.copytree(zig.parent / "lib/include", root / "resource/include", copy_function=_place)
    _write_headers(fake)
    sources = sorted((HERE / "runtime").glob("*.cpp"))
    _build_library(zig, sources, lib / "libamdhip64.so.6", fake, cpu_compiler.RUNTIME)
    (lib / "libamdhip64.so").symlink_to("libamdhip64.so.6")
    for number in range(_DEVICES):
        (lib / f"device-{number}.busy").touch()
    _write_compilers(root, tools)
    return FakeRocm(root)


def add_smi(rocm: FakeRocm) -> None:
    """Install the library that tells clocks and temperatures."""
    _build_library(_zig(), [HERE / "fakesmi.cpp"], rocm.root / "lib/libamd_smi.so")


def _zig() -> Path:
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "zig"


def _place(source: str | Path, target: str | Path) -> Any:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def _build_library(zig: Path, sources: Sequence[Path], library: Path, *folders: Path) -> None:
    system = [zig.parent / "lib/libc/include" / name for name in _HEADERS] + [zig.parent / "lib/include"]
    includes = [word for folder in (*folders, *system) for word in ("-isystem", str(folder))]
    objects: list[Path] = []
    for source in sources:
        objects.append(library.with_name(f"{source.stem}.o"))
        _run([
            zig, "clang", "-target", "x86_64-linux-gnu", "-std=c++20", "-O2", "-fPIC", "-Wall",
            "-Wextra", "-Werror",
            "-fno-exceptions", "-fno-rtti", "-fno-builtin", "-nostdlibinc", "-nostdinc++", *includes,
            "-c", source, "-o", objects[-1],
        ])  # fmt: skip
    host = host_libraries()
    _run([
        zig, "ld.lld", "-shared", f"-soname={library.name}", *objects, host.libc, host.libm, "-o", library,
    ])  # fmt: skip
    for made in objects:
        made.unlink()


def _write_compilers(root: Path, tools: Path) -> None:
    toolchain = find_toolchain("cpu")
    clang_headers = root / "resource/include"
    cpu = _includes(INCLUDE / "cpu", INCLUDE / "common", INCLUDE)
    # What the CPU device is built with: private there, and the same here or the test is of something else.
    common, kernel = cpu_compiler._COMMON_FLAGS, cpu_compiler._KERNEL_FLAGS
    runtime = [
        *common,
        *cpu_compiler._RUNTIME_FLAGS,
        *_includes(root / "fake"),
        *cpu,
        *_includes(clang_headers),
    ]
    objects: list[Path] = []
    for source in sorted(cpu_compiler.RUNTIME.glob("*.cpp")):
        objects.append(root / f"fake/{source.stem}.o")
        _run([*toolchain.clang, *runtime, "-c", source, "-o", objects[-1]])
    _run([*toolchain.lld, "-r", *objects, "-o", root / "fake/runtime.o"])
    link = [
        "-static", "--gc-sections", "--emit-relocs", "--no-dependent-libraries", "-z", "noexecstack",
        "-T", root / "fake/image.ld",
    ]  # fmt: skip
    values: dict[str, Sequence[object]] = {
        "ROOT": [root],
        "X86_FLAGS": [*common, *kernel, "-x", "c++", *cpu, *_includes(clang_headers)],
        "X86_LINK": link,
        "HOST_HEADERS": _includes(HERE / "include"),
        "CPU_HEADERS": cpu,
        "DEVICE_HEADERS": _includes(HERE / "include", INCLUDE / "amdgpu", INCLUDE / "common", INCLUDE),
        "CLANG_HEADERS": _includes(clang_headers),
    }
    _write_script(HERE / "x86.sh", root / "fake/x86.sh", values)
    _write_script(HERE / "clang.sh", tools / "clang++", values)
    _write_script(HERE / "hipcc.sh", root / "bin/hipcc", values)
    (tools / "ld.lld").write_text(f'#!/bin/sh\nexec {root}/zig ld.lld "$@"\n')
    (tools / "ld.lld").chmod(0o755)


def _includes(*folders: Path) -> list[str]:
    return [word for folder in folders for word in ("-isystem", str(folder))]


def _write_script(template: Path, script: Path, values: Mapping[str, Sequence[object]]) -> None:
    text = template.read_text()
    for name, words in values.items():
        text = text.replace(f"@{name}@", " ".join(map(str, words)))
    script.write_text(text)
    script.chmod(0o755)


def _write_headers(fake: Path) -> None:
    """What differs in the x86 build of a kernel: its threads' stacks lie above any program's own memory."""
    shutil.copy(HERE / "fake_export.h", fake)
    shutil.copy(cpu_compiler.RUNTIME / "image.ld", fake)
    (fake / "ks").mkdir()
    text = (INCLUDE / "cpu/ks/abi.h").read_text()
    assert _STACKS in text
    (fake / "ks/abi.h").write_text(text.replace(_STACKS, "#define KS_STACKS 0x100000000000ul"))


def _run(argv: Sequence[object]) -> None:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
