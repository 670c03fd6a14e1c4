"""Keeping threads of this process, and what they start, off the core on which kernels are timed.

Covered: every thread of this process while a core is reserved, processes started by a thread that is kept
off, and what they start in turn. Not covered: other programs; see load.py.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path

__all__ = ["off_core", "reserved_core"]

_lock = threading.Lock()
_reservations: Counter[int] = Counter()
_kept_off: Counter[tuple[int, int]] = Counter()
# Threads, by core, that could run there before: only these get it back.
_withheld: dict[int, set[int]] = {}


@contextlib.contextmanager
def off_core(core: int | None) -> Generator[None]:
    """Keep the calling thread, and processes that it starts, off `core`, if there is another one."""
    if core is None:
        yield
        return
    thread = threading.get_native_id()
    with _lock:
        _kept_off[thread, core] += 1
        _steer(thread, core)
    try:
        yield
    finally:
        with _lock:
            _kept_off[thread, core] -= 1
            _steer(thread, core)


@contextlib.contextmanager
def reserved_core(core: int) -> Generator[None]:
    """Keep all threads of this process off `core`, if there is another one, also those begun meanwhile."""
    with _lock:
        _reservations[core] += 1
        there = _threads()
        for thread in there:
            _steer(thread, core)
    try:
        yield
    finally:
        with _lock:
            _reservations[core] -= 1
            now = _threads()
            # A thread begun meanwhile has inherited its absence from there.
            _withheld.setdefault(core, set()).update(now - there)
            for thread in now:
                _steer(thread, core)
            _withheld[core] &= now


def _steer(thread: int, core: int) -> None:
    withheld = _withheld.setdefault(core, set())
    try:
        allowed = os.sched_getaffinity(thread)
        if _reservations[core] or _kept_off[thread, core]:
            if core in allowed and len(allowed) > 1:
                withheld.add(thread)
                os.sched_setaffinity(thread, allowed - {core})
        elif thread in withheld:
            withheld.discard(thread)
            os.sched_setaffinity(thread, allowed | {core})
    except ProcessLookupError:
        withheld.discard(thread)


def _threads() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}
