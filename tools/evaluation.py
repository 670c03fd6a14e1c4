"""What the judge says of a kernel: a value with its evidence, fit to be stored and shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from kernel_scientist.sandbox.resources import KernelResources

__all__ = ["Check", "Comparison", "Evaluation", "Interval", "ShapeTiming", "Verdict"]

Json = dict[str, Any]


class Verdict(StrEnum):
    """The one word that sums up an evaluation; everything but ``accepted`` is a failure."""

    ACCEPTED = "accepted"
    INVALID_PLAN = "invalid_plan"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"
    WRONG_RESULT = "wrong_result"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    IMPLAUSIBLE = "implausible"


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate with the bounds of its confidence interval at `level` (0.99 = 99 %)."""

    value: float
    low: float
    high: float
    level: float

    def to_dict(self) -> Json:
        """JSON has no infinity: an interval without an upper end has ``null`` there."""
        return {**asdict(self), "high": self.high if math.isfinite(self.high) else None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Interval:
        high = data["high"]
        return cls(
            float(data["value"]), float(data["low"]), math.inf if high is None else float(high), data["level"]
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the judge verified; `detail` holds the figures (worst error, shape, distribution)."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ShapeTiming:
    """Time per run of the plan on one shape, in microseconds, and its ratio to the baseline.

    `time_us` is the median over batches, `low_us`/`high_us` the quartiles. `speedup` is baseline time
    over this kernel's time from paired batches. `bound_us` is the speed-of-light time (the larger of
    flops over peak and bytes over bandwidth) where peak and bandwidth are known, and `bound_by` names
    which of the two it is. `noise` is what a pair of batches of one and the same kernel
    differs by here, as the standard deviation of the logarithm of their ratio (0.01 is about 1 %).
    """

    shape: Mapping[str, int]
    time_us: float
    low_us: float
    high_us: float
    batches: int
    launches_per_batch: int
    baseline_us: float | None = None
    speedup: Interval | None = None
    bound_us: float | None = None
    bound_by: str | None = None
    noise: float | None = None

    def to_dict(self) -> Json:
        speedup = self.speedup.to_dict() if self.speedup is not None else None
        return {**_fields(self), "shape": dict(self.shape), "speedup": speedup}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ShapeTiming:
        changed: Json = {"speedup": _optional(data["speedup"])}
        return cls(**{**data, **changed})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The judge's answer on one kernel.

    `tier` is ``screen`` or ``confirm``. `speedup` is the geometric mean over shapes against the
    baseline. `message` is empty for an accepted kernel, else the evidence in a few lines.
    `seconds` splits the time from source to verdict by stage. `method` says how was timed: clock,
    estimator, pairs, caches. `begun_anew` says of each device that was lost under it how that came.
    """

    verdict: Verdict
    message: str
    tier: str
    target: str
    device: str
    sandbox: str
    baseline_key: str
    kernel_key: str
    checks: tuple[Check, ...] = ()
    timings: tuple[ShapeTiming, ...] = ()
    speedup: Interval | None = None
    resources: tuple[KernelResources, ...] = ()
    resources_note: str = ""
    compile_log: str = ""
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    method: str = ""
    begun_anew: tuple[str, ...] = ()

    def to_dict(self) -> Json:
        """A value `json.dumps` can write and `from_dict` turns back into an equal evaluation."""
        return {
            **_fields(self),
            "verdict": self.verdict.value,
            "checks": [_fields(check) for check in self.checks],
            "timings": [timing.to_dict() for timing in self.timings],
            "speedup": self.speedup.to_dict() if self.speedup is not None else None,
            "resources": [
                {**_fields(item), "instructions": dict(item.instructions)} for item in self.resources
            ],
            "notes": list(self.notes),
            "begun_anew": list(self.begun_anew),
            "seconds": dict(self.seconds),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Evaluation:
        """The evaluation that `to_dict` described; KeyError, TypeError or ValueError for anything else."""
        changed: Json = {
            "verdict": Verdict(data["verdict"]),
            "checks": tuple(Check(**item) for item in data["checks"]),
            "timings": tuple(ShapeTiming.from_dict(item) for item in data["timings"]),
            "speedup": _optional(data["speedup"]),
            "resources": tuple(KernelResources(**item) for item in data["resources"]),
            "notes": tuple(data["notes"]),
            "begun_anew": tuple(data.get("begun_anew", ())),
        }
        return cls(**{**data, **changed})

    @property
    def accepted(self) -> bool:
        return self.verdict is Verdict.ACCEPTED

    @property
    def time_us(self) -> float | None:
        """Geometric mean of the times over the benchmark shapes; ``None`` when nothing was timed."""
        if not self.timings:
            return None
        product = 1.0
        for timing in self.timings:
            product *= timing.time_us ** (1.0 / len(self.timings))
        return product


@dataclass(frozen=True, slots=True)
class Comparison:
    """Kernel B measured against kernel A in fresh pairs; `speedup` is time of A over time of B.

    `claim` is what the interval allows one to say. When one of the two is not accepted there are no
    timings, and the interval is [0, infinity).
    """

    a: Evaluation
    b: Evaluation
    timings: tuple[ShapeTiming, ...]
    speedup: Interval
    claim: str

    def to_dict(self) -> Json:
        return {
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "timings": [timing.to_dict() for timing in self.timings],
            "speedup": self.speedup.to_dict(),
            "claim": self.claim,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Comparison:
        return cls(
            a=Evaluation.from_dict(data["a"]),
            b=Evaluation.from_dict(data["b"]),
            timings=tuple(ShapeTiming.from_dict(item) for item in data["timings"]),
            speedup=Interval.from_dict(data["speedup"]),
            claim=str(data["claim"]),
        )


def _fields(value: Check | ShapeTiming | Evaluation | KernelResources) -> Json:
    """The fields by name, nothing inside them converted."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _optional(data: Mapping[str, Any] | None) -> Interval | None:
    return None if data is None else Interval.from_dict(data)
