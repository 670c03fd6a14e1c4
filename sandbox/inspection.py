"""What a machine has for running kernels, looked at in the order in which a session would need it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .errors import KernelScientistError, UnusableEnvironment

__all__ = ["Finding", "State", "asked", "inspect_machine", "require_writable"]

State = Literal["ok", "limited", "unusable"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what to do about it where `fix` is not empty.

    ``limited``: the program works, with less; ``unusable``: it does not.
    """

    name: str
    state: State
    detail: str
    fix: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def inspect_machine() -> list[Finding]:
    """Everything a judge needs of this machine, and what its AMD GPUs need."""
    from .gpu_inspection import inspect_gpus, this_machine

    return [
        _python(),
        asked("cpu compiler", "unusable", lambda: _compiler("cpu")),
        asked("gfx942 compiler", "limited", lambda: _compiler("gfx942")),
        asked("cage", "unusable", _cage),
        asked("device", "unusable", _device),
        *inspect_gpus(this_machine()),
        *_gpu_runtime(),
        asked("data folder", "unusable", _data_folder),
    ]


def asked(name: str, otherwise: State, ask: Callable[[], str]) -> Finding:
    """The answer as a finding; what is raised for the user becomes the state `otherwise`."""
    try:
        return Finding(name, "ok", " ".join(ask().split()))
    except (KernelScientistError, OSError, ImportError) as error:
        return Finding(name, otherwise, " ".join(str(error).split()))


def require_writable(folder: Path, otherwise: str) -> None:
    """Raise unless `folder` may be written or made; nothing is made."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UnusableEnvironment(f"{folder} cannot be written; {otherwise}.")


def _python() -> Finding:
    usable = sys.version_info >= (3, 11) and sys.platform == "linux" and platform.machine() == "x86_64"
    detail = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    if usable:
        return Finding("python", "ok", detail)
    return Finding("python", "unusable", f"{detail}; x86-64 Linux is needed", "use an x86-64 Linux machine")


def _compiler(arch: str) -> str:
    from .toolchain import find_toolchain

    found = find_toolchain(arch)
    return f"{found.name}, {found.clang[0]}"


def _cage() -> str:
    from .cage import select_cage

    cage = select_cage()
    detail = f"({cage.detail})" if cage.detail else ""
    return " ".join(part for part in (cage.name, cage.version, detail) if part)


def _device() -> str:
    from .device import cpu_device

    device = cpu_device()
    return f"{device.model}, {device.cores} cores"


def _gpu_runtime() -> list[Finding]:
    """What the ROCm runtime says of its devices, and the cage that shows them; nothing without a runtime."""
    from .rocm import find_runtime

    if find_runtime() is None:
        return []
    told = asked("gpu runtime", "limited", _runtime_devices)
    return [told] if told.state != "ok" else [told, _gpu_cage()]


def _runtime_devices() -> str:
    from .rocm import devices

    found = devices()
    if not found:
        raise UnusableEnvironment("the ROCm runtime has no device for this process.")
    titles = [f"{one.title} ({one.arch}), {one.memory_bytes / 2**30:.0f} GiB" for one in found]
    kinds = ", ".join(f"{titles.count(title)} x {title}" for title in dict.fromkeys(titles))
    return f"{kinds}; HIP {found[0].runtime}"


def _gpu_cage() -> Finding:
    from .cage import select_cage
    from .rocm.confinement import confine
    from .rocm.discovery import require_runtime

    told = asked("gpu cage", "limited", lambda: confine(select_cage(), require_runtime()).name)
    if told.state != "ok" or not told.detail.startswith("none"):
        return told
    fix = "install bubblewrap; in a container, start it with `--security-opt seccomp=unconfined`"
    return Finding(told.name, "limited", told.detail, fix)


def _data_folder() -> str:
    from .files import cache_home, data_home

    for folder in (data_home(), cache_home()):
        require_writable(folder, "set KERNEL_SCIENTIST_HOME to a folder that can be")
    return f"{data_home()}, cache in {cache_home()}"
