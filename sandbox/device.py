"""The host CPU as a kernel device: what it is called and which core times kernels."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import UnusableEnvironment

__all__ = ["CpuDevice", "cpu_device"]

_VECTOR_FLAGS = ("avx512f", "avx2", "avx", "fma", "f16c")


@dataclass(frozen=True, slots=True)
class CpuDevice:
    """`cores` is how many this process may use, `usable` which; `judge_core` differs from `timing_core` where
    there are two."""

    model: str
    cores: int
    timing_core: int
    judge_core: int
    isa: tuple[str, ...]
    usable: tuple[int, ...]


@cache
def cpu_device() -> CpuDevice:
    """This machine's CPU. Raises UnusableEnvironment where the fiber runtime has no port."""
    machine = platform.machine()
    if machine not in {"x86_64", "AMD64"}:
        raise UnusableEnvironment(
            f"the CPU device runs on x86-64 only and this machine is {machine}; use an x86-64 Linux machine."
        )
    cores = sorted(os.sched_getaffinity(0))
    model, flags = _cpuinfo()
    return CpuDevice(
        model=model,
        cores=len(cores),
        timing_core=cores[-1],
        judge_core=cores[0],
        isa=tuple(flag for flag in _VECTOR_FLAGS if flag in flags),
        usable=tuple(cores),
    )


def _cpuinfo() -> tuple[str, frozenset[str]]:
    model, flags = "unknown x86-64 CPU", frozenset[str]()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        elif key.strip() == "flags":
            flags = frozenset(value.split())
            break
    return model, flags
