"""What else the machine does while kernels are timed: other processes' share of its cores, and the host's.

Covered: processes of this machine, and of other guests where the hypervisor reports stolen time. Not covered:
what others do to shared caches and memory; only the spread of the times themselves shows that.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LoadSample", "Strain", "sample_load"]

_STAT = Path("/proc/stat")
_FIELDS = 8  # user, nice, system, idle, iowait, irq, softirq, steal
_IDLE, _IOWAIT, _STEAL = 3, 4, 7


@dataclass(frozen=True, slots=True)
class Strain:
    """The machine between two samples, in cores: `others` used by processes that are not ours, `stolen`
    by the host of a virtual machine, both out of `cores`."""

    cores: int
    others: float
    stolen: float


@dataclass(frozen=True, slots=True)
class LoadSample:
    """Seconds since some moment: by the clock, busy and stolen on the cores asked for, and used by us.

    "Us" is this process and its children that have ended.
    `waiting` is the load average of the last minute: processes that ran or wanted to.
    """

    at_s: float
    cores: int
    busy_s: float
    stolen_s: float
    own_s: float
    waiting: float

    def until(self, later: LoadSample) -> Strain:
        wall_s = max(later.at_s - self.at_s, 1e-6)
        others = (later.busy_s - self.busy_s) - (later.own_s - self.own_s)
        stolen = later.stolen_s - self.stolen_s
        return Strain(self.cores, max(0.0, others / wall_s), max(0.0, stolen / wall_s))


def sample_load(cores: Collection[int]) -> LoadSample | None:
    """The load of these cores now; ``None`` where the kernel does not tell."""
    names = {f"cpu{core}" for core in cores}
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines()]
        counted = [
            [int(word) for word in line[1 : 1 + _FIELDS]] for line in lines if line and line[0] in names
        ]
        waiting = os.getloadavg()[0]
    except (OSError, ValueError):
        return None
    if not counted or any(len(row) < _FIELDS for row in counted):
        return None
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    stolen = sum(row[_STEAL] for row in counted)
    busy = sum(sum(row) - row[_IDLE] - row[_IOWAIT] - row[_STEAL] for row in counted)
    return LoadSample(time.monotonic(), len(counted), busy * tick_s, stolen * tick_s, _own_s(), waiting)


def _own_s() -> float:
    """Processor time of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
