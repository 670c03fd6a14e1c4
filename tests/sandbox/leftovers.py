"""What a batch on a device may leave behind in this process and beside it."""

from __future__ import annotations

import os
from pathlib import Path

from .fakehip.machine import FakeRocm

__all__ = ["open_files", "resident_mb", "workers"]


def workers(rocm: FakeRocm) -> list[int]:
    """Processes that were started for this runtime and still live."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(rocm.root / "lib").encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
