"""What a device worker is asked and what comes of it. Nothing a worker says decides a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BatchOutcome",
    "Crashed",
    "Fill",
    "Finished",
    "Implausible",
    "KernelLaunch",
    "NotLaunched",
    "Pointer",
    "Region",
    "Tampered",
    "TimedOut",
]


@dataclass(frozen=True, slots=True)
class Region:
    """A device buffer of one run: `nbytes` long; ``read`` regions are mapped read-only."""

    name: str
    nbytes: int
    access: Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A launch argument that points to the start of the run's own region number `region`."""

    region: int


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch of kernel number `kernel` of the code object; sizes in blocks, threads and bytes."""

    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds_bytes: int
    arguments: tuple[Pointer | int | float, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    """Sets every element of the run's own region number `region` to `value`, as a `dtype` element.

    `dtype` is a NumPy/ml_dtypes name; its elements are 1, 2, 4 or 8 bytes wide.
    """

    region: int
    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The worker answered; `seconds` is the caller's wall clock from "go" to the worker's end.

    `processor_s` is what the worker had of its core in that time, by the kernel's account, which a busy
    machine does not lengthen. ``None`` where the worker could have had others work for it, or the kernel
    does not say. `device_s` is the runs' time by the device's own clock, where it has one.
    """

    seconds: float
    processor_s: float | None = None
    device_s: float | None = None


@dataclass(frozen=True, slots=True)
class Crashed:
    """The worker died or broke the protocol; `reason` is one sentence of evidence.

    `device_lost` when the device's runtime said that the device is gone: for a reset, or for good.
    """

    reason: str
    device_lost: bool = False


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The worker was killed when `limit_s` seconds had passed."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class NotLaunched:
    """The device's runtime would not load or launch the code object."""

    reason: str


@dataclass(frozen=True, slots=True)
class Tampered:
    """The runs changed memory that they were given to read, or beside it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Implausible:
    """The device's clock and the caller's contradict each other."""

    reason: str


BatchOutcome = Finished | Crashed | TimedOut | NotLaunched | Tampered | Implausible
