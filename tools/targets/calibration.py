"""The CPU device's own speed of light, measured by kernels that go the same way as a candidate.

One core's peak comes from independent fused multiply-adds in registers. Its bandwidth is read at two
footprints: a few MiB over and over, which only the last-level cache can serve, and as much as no cache
holds. The best of several batches counts, since noise only ever slows down.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np

from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.errors import SandboxError
from kernel_scientist.sandbox.execution import Finished, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.files import atomic_write, cache_home

from ..roofline import BandwidthPoint, Roofline
from .base import Device

__all__ = ["cached_roofline"]

_SOURCE = """
#include <hip/hip_runtime.h>
typedef float wide __attribute__((ext_vector_type(16)));
#if defined(__AVX512F__)
constexpr int kChains = 12;  // latency times issue width of the widest cores, in registers
#else
constexpr int kChains = 6;
#endif

__global__ void multiply_add(const float* in, float* out, int steps) {
  wide sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = (wide)(in[i]);
  const wide factor = (wide)(in[kChains]), term = (wide)(in[kChains + 1]);
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * factor + term;
  wide total = sums[0];
  for (int i = 1; i < kChains; ++i) total += sums[i];
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += total[i];
  out[0] = sum;
  out[1] = (float)kChains;
}

__global__ void read_all(const float* in, float* out, int n, int passes) {
  const wide* data = (const wide*)in;
  wide sums[4] = {};
  for (int pass = 0; pass < passes; ++pass)
    for (int i = 0; i < n / 64; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] += data[4 * i + j];
  const wide total = sums[0] + sums[1] + sums[2] + sums[3];
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += total[i];
  out[0] = sum;
}
"""
_STEPS = 400_000
_LANES = 16
# Working sets from which each bandwidth counts, what is read to measure it, and how often.
_READS = ((0, 4 << 20, 16), (64 << 20, 128 << 20, 1))
_BATCHES = 4
_TIMEOUT_S = 20.0


def cached_roofline(device: Device, fingerprint: str, *, again: bool) -> Roofline:
    """The roofline of this machine, from the cache unless `again`; `fingerprint` tells machines apart.

    Measured anew, the larger of the old and the new rates is kept.
    """
    key = hashlib.sha256(f"{fingerprint}\n{_SOURCE}\n{_STEPS} {_READS}".encode()).hexdigest()[:16]
    path = cache_home() / f"roofline-{key}.json"
    known = _load(path)
    if known is not None and not again:
        return known
    with device.exclusive():
        measured = _measure(device)
    best = measured if known is None else _larger(known, measured)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(_to_json(best)))
    return best


def _measure(device: Device) -> Roofline:
    code = _compile(device)
    single = _peak(device, code)
    points = tuple(
        BandwidthPoint(footprint, _bandwidth(device, code, nbytes, passes))
        for footprint, nbytes, passes in _READS
    )
    # The narrow types are widened to float32 before they are computed with.
    peaks = dict.fromkeys(("float32", "float16", "bfloat16", "float8"), single) | {"float64": single / 2}
    return Roofline(peaks, points, "measured on one core of this machine")


def _compile(device: Device) -> CodeObject:
    buffers = (BufferArgument("in", "float32", False), BufferArgument("out", "float32", True))
    entries = (
        EntryPoint("multiply_add", (*buffers, ScalarArgument("steps", "int32")), 1),
        EntryPoint(
            "read_all", (*buffers, ScalarArgument("n", "int32"), ScalarArgument("passes", "int32")), 1
        ),
    )
    code = device.compile(CompileRequest(_SOURCE, entries))
    if not isinstance(code, CodeObject):
        raise SandboxError(f"The calibration kernel does not compile: {code.message}")
    return code


def _best(device: Device, code: CodeObject, kernel: int, nbytes: int, *numbers: int) -> tuple[float, float]:
    """The shortest batch in seconds, and what the kernel left in out[1]."""
    regions = (Region("in", nbytes, "read"), Region("out", 64, "write"))
    launch = KernelLaunch(kernel, (1, 1, 1), (1, 1, 1), 0, (Pointer(0), Pointer(1), *numbers))
    best = math.inf
    with device.workspace(regions, 1) as workspace:
        for _ in range(_BATCHES):
            np.frombuffer(workspace.view(0, 0), dtype=np.float32)[:] = 0.5
            outcome = device.run(code, workspace, (launch,), count=1, timeout_s=_TIMEOUT_S)
            if not isinstance(outcome, Finished):
                raise SandboxError(f"The calibration kernel did not run: {outcome}")
            best = min(best, outcome.seconds)
        chains = float(np.frombuffer(workspace.view(0, 1), dtype=np.float32)[1])
    return best, chains


def _peak(device: Device, code: CodeObject) -> float:
    seconds, chains = _best(device, code, 0, 4096, _STEPS)
    return 2.0 * _LANES * chains * _STEPS / seconds


def _bandwidth(device: Device, code: CodeObject, nbytes: int, passes: int) -> float:
    seconds, _ = _best(device, code, 1, nbytes, nbytes // 4, passes)
    return nbytes * passes / seconds


def _larger(a: Roofline, b: Roofline) -> Roofline:
    peaks = {dtype: max(a.flops_per_s[dtype], b.flops_per_s[dtype]) for dtype in b.flops_per_s}
    points = tuple(
        BandwidthPoint(one.footprint_bytes, max(one.bytes_per_s, two.bytes_per_s))
        for one, two in zip(a.bandwidth, b.bandwidth, strict=True)
    )
    return Roofline(peaks, points, b.source)


def _to_json(roofline: Roofline) -> dict[str, object]:
    return {
        "flops_per_s": dict(roofline.flops_per_s),
        "bandwidth": [[point.footprint_bytes, point.bytes_per_s] for point in roofline.bandwidth],
        "source": roofline.source,
    }


def _load(path: Path) -> Roofline | None:
    """What the cache holds; a damaged file counts as none and is measured again."""
    try:
        data = json.loads(path.read_text())
        points = tuple(BandwidthPoint(int(size), float(rate)) for size, rate in data["bandwidth"])
        peaks = {str(dtype): float(rate) for dtype, rate in data["flops_per_s"].items()}
        return Roofline(peaks, points, str(data["source"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
