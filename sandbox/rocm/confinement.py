"""The cage of a device worker: bubblewrap that shows the device files, if a device can be reached in it.

Covered in the cage: files, network, other processes, and the end of all of it with its first process. The
worker is ours and a candidate is device code only, so where no such cage works the worker runs without one,
and its `name` says so.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..cage import Cage
from ..errors import UnusableEnvironment
from .command import FOLDER, python_folders, worker_argv, worker_environment
from .discovery import ask

__all__ = ["Confinement", "confine"]

_DEVICES = tuple(map(Path, ("/dev/kfd", "/dev/dri")))
_SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/opt/amdgpu")))


@dataclass(frozen=True, slots=True)
class Confinement:
    """How workers run; `cage` is ``None`` where no cage can show a device, for the reason in `detail`."""

    cage: Cage | None
    detail: str

    @property
    def name(self) -> str:
        if self.cage is None:
            return f"none for the worker ({self.detail}); candidates are device code only"
        return f"{self.cage.name} {self.cage.version}".strip()

    def command(
        self,
        argv: Sequence[str],
        library: Path,
        environment: Mapping[str, str],
        info_fd: int | None = None,
    ) -> list[str]:
        """The command for a process that is itself started with `environment`; see `Cage.device_command`."""
        if self.cage is None:
            return list(argv)
        return self.cage.device_command(
            argv, readable=_readable(library), devices=_DEVICES, environment=environment, info_fd=info_fd
        )


def confine(cage: Cage, library: Path) -> Confinement:
    """The best confinement in which the runtime still finds the devices that it finds without."""
    if cage.program is None:
        return Confinement(None, f"{cage.name}: device files need bubblewrap")
    # What is visible may differ from one call to the next, so that it is part of what is remembered.
    visible = tuple(sorted(worker_environment(library).items()))
    return _tried(cage, library, visible)


@functools.cache
def _tried(cage: Cage, library: Path, visible: tuple[tuple[str, str], ...]) -> Confinement:
    caged = Confinement(cage, cage.detail)
    outside = ask(library)
    argv = worker_argv(["devices", str(library)])
    try:
        inside = ask(library, caged.command(argv, library, dict(visible)), dict(visible))
    except UnusableEnvironment:
        inside = {}
    if "devices" in inside and len(inside["devices"]) == len(outside.get("devices", ())):
        return caged
    return Confinement(None, f"no device can be reached in {cage.name}")


def _readable(library: Path) -> list[Path]:
    searched = [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    roots = [library.parent.parent, library.resolve().parent.parent, *searched, *python_folders(), FOLDER]
    below = [root for root in roots if root.is_dir() and not any(root.is_relative_to(one) for one in _SYSTEM)]
    folders = [*_SYSTEM, *dict.fromkeys(root for root in below if root != Path("/"))]
    return [folder for folder in folders if folder.exists()]
