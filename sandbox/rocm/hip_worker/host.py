"""What the worker needs of its own machine: the judge's memory, and an end with its parent's."""

from __future__ import annotations

import ctypes
import mmap
import resource
import signal

__all__ = ["Memory", "differs", "lock_down", "waited_ns"]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value
_PR_SET_PDEATHSIG = 1


def lock_down() -> None:
    """No core dumps, whose GPU part alone can have gigabytes, and no life after the judge's."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def waited_ns() -> int:
    """How long this thread has been ready to run and had no processor, where the kernel tells; else 0."""
    try:
        with open("/proc/thread-self/schedstat") as file:  # noqa: PTH123 - pathlib would take longer than it
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def differs(a: int, b: int, nbytes: int) -> bool:
    return bool(_libc.memcmp(a, b, nbytes))


class Memory:
    """A shared file in this process, by addresses. It stays for the process's whole life."""

    def __init__(self, fd: int, nbytes: int, *, writable: bool) -> None:
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        address = _libc.mmap(None, nbytes, protection, mmap.MAP_SHARED, fd, 0)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "the judge's memory cannot be mapped")
        self._address = int(address)

    def at(self, offset: int) -> int:
        return self._address + offset
