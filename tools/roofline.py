"""The speed of light: no run can be faster than its bytes over the bandwidth or its flops over the peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .problem import Problem

__all__ = ["BandwidthPoint", "Bound", "Roofline", "speed_of_light"]


@dataclass(frozen=True, slots=True)
class BandwidthPoint:
    """Bytes per second that one core reads from working sets of `footprint_bytes` and more."""

    footprint_bytes: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """Rates no kernel exceeds. `flops_per_s` is by dtype of the arithmetic; ``float8`` stands for both kinds.

    `bandwidth` is in order of footprint; what fits a cache is read faster than memory allows.
    """

    flops_per_s: Mapping[str, float]
    bandwidth: tuple[BandwidthPoint, ...]
    source: str

    def times(self, cores: int) -> Roofline:
        """What so many cores at once cannot exceed, if this is one core's."""
        if cores == 1:
            return self
        flops = {dtype: rate * cores for dtype, rate in self.flops_per_s.items()}
        points = tuple(BandwidthPoint(one.footprint_bytes, one.bytes_per_s * cores) for one in self.bandwidth)
        return Roofline(flops, points, f"{self.source}, times {cores}")

    def peak(self, dtype: str) -> float | None:
        """Operations per second of that type, or ``None`` where it is not known."""
        return self.flops_per_s.get("float8" if dtype.startswith("float8") else dtype)

    def bytes_per_s(self, footprint_bytes: int) -> float:
        """The bandwidth for a working set of that size: that of the next smaller point measured."""
        fitting = [point for point in self.bandwidth if point.footprint_bytes <= footprint_bytes]
        return (fitting[-1] if fitting else self.bandwidth[0]).bytes_per_s


@dataclass(frozen=True, slots=True)
class Bound:
    """The least time a run can take, in microseconds, and which of the two bounds it is."""

    time_us: float
    by: str


def speed_of_light(problem: Problem, shape: Mapping[str, int], roofline: Roofline, *, runs: int) -> Bound:
    """The bound for one run of `shape` in a batch of `runs`, each on its own buffers."""
    moved = float(problem.bytes.evaluate(shape))
    by_bytes = moved / roofline.bytes_per_s(int(moved) * runs) * 1e6
    peak = roofline.peak(problem.arithmetic)
    by_flops = float(problem.flops.evaluate(shape)) / peak * 1e6 if peak else 0.0
    return Bound(by_flops, "arithmetic") if by_flops > by_bytes else Bound(by_bytes, "memory")
