"""File descriptors that are made to be shared with a child, and closed together whatever happens."""

from __future__ import annotations

import os
from typing import final

__all__ = ["SharedFiles"]


@final
class SharedFiles:
    """Files in memory and pipes; none is inherited unless it is passed on by number."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def memory(self, name: str) -> int:
        """An empty file in memory."""
        self._fds.append(os.memfd_create(name, os.MFD_CLOEXEC))
        return self._fds[-1]

    def pipe(self) -> tuple[int, int]:
        """The end to read from and the end to write to."""
        ends = os.pipe2(os.O_CLOEXEC)
        self._fds += ends
        return ends

    def close_one(self, fd: int) -> None:
        """Close one that only the child needs from now on."""
        self._fds.remove(fd)
        os.close(fd)

    def close(self) -> None:
        """Close what is open."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
