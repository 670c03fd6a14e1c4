"""Files beneath a folder, and no others: what a run names may come from anybody.

Covered: ``..``, absolute names, symbolic links at any step, pipes and devices, files beyond a size. Not
covered: hard links, and folders that somebody else may write to while they are read.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath

__all__ = ["open_beneath", "read_beneath"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK the opening of a pipe waits for somebody who writes into it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_beneath(folder: Path, name: str) -> int:
    """A handle on the regular file `name` beneath `folder`. Raises `OSError`, also where `name` leads out."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
        raise PermissionError(errno.EACCES, "it is not beneath the folder", name)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        handle = os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", name)
    return handle


def read_beneath(folder: Path, name: str, most: int) -> bytes:
    """The bytes of a regular file beneath `folder`. Raises `OSError`, also for more than `most` bytes."""
    with os.fdopen(open_beneath(folder, name), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", name)
    return data
