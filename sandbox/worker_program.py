"""The trusted program in the cage: built once per machine, linked to the C library this Python runs on.

No system headers or C start-up files are needed: the program declares what it uses, and the linker is given
the very libraries that ``/proc/self/maps`` shows.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import platform
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import SandboxError, UnusableEnvironment
from .files import FileLock, cache_home, explained
from .processes import run
from .toolchain import Toolchain, find_toolchain

__all__ = ["HostLibraries", "WorkerProgram", "host_libraries", "worker_program"]

_ROOM = Path(__file__).parent
_SOURCES = ("runtime/worker/worker.c", "runtime/worker/lockdown.c")
_HEADERS = (
    "runtime/worker/host.h",
    "runtime/worker/lockdown.h",
    "runtime/libm_names.h",
    "include/cpu/ks/abi.h",
)
_COMPILE = (
    "-target", "x86_64-linux-gnu", "-std=c11", "-O2", "-ffreestanding", "-nostdlibinc", "-fPIC",
    "-fno-stack-protector",
)  # fmt: skip
_LINK = ("-pie", "-z", "now", "-z", "relro", "-z", "noexecstack")
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class HostLibraries:
    """The C library, its mathematics and its loader, as files of this machine (symbolic links resolved)."""

    libc: Path
    libm: Path
    loader: Path

    @property
    def binds(self) -> tuple[tuple[Path, Path], ...]:
        """(file, the name the loader looks for) of what a cage must show."""
        return (
            (self.libc, self.libc.parent / "libc.so.6"),
            (self.libm, self.libm.parent / "libm.so.6"),
            (self.loader, self.loader),
        )


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    path: Path
    libraries: HostLibraries


@functools.cache
def host_libraries() -> HostLibraries:
    """Raises `UnusableEnvironment` on anything but x86-64 Linux with glibc."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise UnusableEnvironment(
            f"The cpu device needs x86-64 Linux, and this is {platform.machine()} {platform.system()}; "
            "run on such a machine."
        )
    try:
        ctypes.CDLL("libm.so.6")
    except OSError:
        raise UnusableEnvironment(
            "The cpu device needs glibc, and this Python uses another C library."
        ) from None
    found: dict[str, Path] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        match = re.search(r"/(libc|libm|ld)(?:-linux-x86-64)?(?:-[\d.]+)?\.so[.\d]*$", path)
        if match:
            found.setdefault(match.group(1), Path(path))
    if found.keys() != {"libc", "libm", "ld"}:
        raise UnusableEnvironment("Cannot find the C library this Python is linked to in /proc/self/maps.")
    return HostLibraries(found["libc"], found["libm"], found["ld"])


@functools.cache
def worker_program() -> WorkerProgram:
    """The program for this machine, built if there is none yet (about a second).

    Raises `UnusableEnvironment` without a compiler, `SandboxError` when it does not build.
    """
    libraries = host_libraries()
    toolchain = find_toolchain("cpu")
    folder = cache_home() / "worker"
    path = folder / _key(libraries, toolchain)
    if not path.exists():
        with (
            explained("build the worker program", folder),
            FileLock(folder / "lock", purpose="building the worker"),
        ):
            if not path.exists():
                _build(path, libraries, toolchain)
    return WorkerProgram(path, libraries)


def _key(libraries: HostLibraries, toolchain: Toolchain) -> str:
    digest = hashlib.sha256(toolchain.name.encode())
    for name in (*_SOURCES, *_HEADERS):
        digest.update((_ROOM / name).read_bytes())
    for path in (libraries.libc, libraries.libm, libraries.loader):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}".encode())
    digest.update(repr((_COMPILE, _LINK)).encode())
    return f"worker-{digest.hexdigest()[:24]}"


def _build(path: Path, libraries: HostLibraries, toolchain: Toolchain) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        work = Path(scratch)
        objects = [f"{Path(source).stem}.o" for source in _SOURCES]
        for source, target in zip(_SOURCES, objects, strict=True):
            includes = ("-isystem", str(toolchain.include))
            _step([*toolchain.clang, *_COMPILE, *includes, "-c", str(_ROOM / source), "-o", target], work)
        found_at = {str(libraries.libc.parent), str(libraries.libm.parent)}
        linked = [str(libraries.libm), str(libraries.libc)]
        runpath = f"-rpath={':'.join(sorted(found_at))}"
        loader = ("--dynamic-linker", str(libraries.loader))
        _step([*toolchain.lld, *_LINK, *loader, runpath, "-o", "worker", *objects, *linked], work)
        (work / "worker").replace(path)


def _step(argv: list[str], folder: Path) -> None:
    completed = run(argv, cwd=folder, timeout_s=_TIMEOUT_S)
    if completed.returncode != 0:
        said = completed.stderr.decode(errors="replace").strip().splitlines()[:3]
        raise SandboxError(
            f"The worker program does not build with {argv[0]}: {' / '.join(said) or 'no message'}."
        )
