"""AMD's data-centre GPUs as their data sheets describe them: units, caches, peak rates.

Rates are dense (without sparsity) and count the matrix units. A data sheet's rate is compute units x
operations a clock of a unit x peak engine clock; the operations are those of the CDNA 2, CDNA 3 and CDNA 4
white papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_scientist.sandbox.rocm import RocmDevice

from .roofline import BandwidthPoint, Roofline

__all__ = ["GPU_PEAKS", "GpuPeaks", "device_roofline", "disagreements", "gpu_roofline", "peaks_of"]

_MIB, _GIB = 1 << 20, 1 << 30
# Sizes that runtimes report are a little below the nominal ones: part of the memory is the firmware's.
_MEMORY_SHARE = 0.9
_CLOCK_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class GpuPeaks:
    """One package. `devices` is how many of them HIP shows, which share all figures evenly.

    `tflops` is TFLOP/s (TOP/s for int8) by the dtype of the arithmetic, `terabytes` TB/s of HBM, `l2_bytes`
    the cache of one XCD (of one die before there were XCDs).
    """

    arch: str
    compute_units: int
    xcds: int
    clock_mhz: int
    lds_bytes: int
    l2_bytes: int
    infinity_cache_bytes: int
    memory_bytes: int
    terabytes: float
    tflops: Mapping[str, float]
    source: str
    devices: int = 1


def _rates(
    float64: float, float32: float, half: float, float8: float | None, int8: float
) -> dict[str, float]:
    rates = {"float64": float64, "float32": float32, "float16": half, "bfloat16": half, "int8": int8}
    return rates if float8 is None else rates | {"float8": float8}


GPU_PEAKS: dict[str, GpuPeaks] = {
    "MI300X": GpuPeaks(
        "gfx942", 304, 8, 2100, 65536, 4 * _MIB, 256 * _MIB, 192 * _GIB, 5.3,
        _rates(163.4, 163.4, 1307.4, 2614.9, 2614.9),
        "AMD Instinct MI300X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html",
    ),
    "MI300A": GpuPeaks(
        "gfx942", 228, 6, 2100, 65536, 4 * _MIB, 256 * _MIB, 128 * _GIB, 5.3,
        _rates(122.6, 122.6, 980.6, 1961.2, 1961.2),
        "AMD Instinct MI300A data sheet, https://www.amd.com/en/products/accelerators/instinct/mi300/mi300a.html",
    ),
    "MI325X": GpuPeaks(
        "gfx942", 304, 8, 2100, 65536, 4 * _MIB, 256 * _MIB, 256 * _GIB, 6.0,
        _rates(163.4, 163.4, 1307.4, 2614.9, 2614.9),
        "AMD Instinct MI325X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi300/mi325x.html",
    ),
    "MI350X": GpuPeaks(
        "gfx950", 256, 8, 2200, 163840, 4 * _MIB, 256 * _MIB, 288 * _GIB, 8.0,
        _rates(72.1, 144.2, 2306.9, 4613.7, 4613.7),
        "AMD Instinct MI350X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi350/mi350x.html",
    ),
    "MI355X": GpuPeaks(
        "gfx950", 256, 8, 2400, 163840, 4 * _MIB, 256 * _MIB, 288 * _GIB, 8.0,
        _rates(78.6, 157.3, 2516.6, 5033.2, 5033.2),
        "AMD Instinct MI355X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi350/mi355x.html",
    ),
    "MI250X": GpuPeaks(
        "gfx90a", 220, 2, 1700, 65536, 8 * _MIB, 0, 128 * _GIB, 3.2768,
        _rates(95.7, 95.7, 383.0, None, 383.0),
        "AMD Instinct MI250X data sheet, https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html",
        devices=2,
    ),
}  # fmt: skip


def gpu_roofline(name: str) -> Roofline:
    """The speed of light of a whole package by its name in `GPU_PEAKS`; KeyError for another."""
    return _roofline(GPU_PEAKS[name], 1.0, 1.0, f"AMD data sheet of {name}")


def peaks_of(device: RocmDevice) -> tuple[str, GpuPeaks] | None:
    """Name and figures of the GPU that `device` is, or is part of; ``None`` when none in the table fits.

    By its name, else (containers often have none) by architecture, compute units and memory.
    """
    for name, peaks in GPU_PEAKS.items():
        if name in device.name and peaks.arch == device.arch:
            return name, peaks
    if any(name.startswith("MI") for name in device.name.split()):
        return None
    fitting = [
        (name, peaks)
        for name, peaks in GPU_PEAKS.items()
        if peaks.arch == device.arch
        and device.compute_units == peaks.compute_units // peaks.devices
        and _MEMORY_SHARE <= device.memory_bytes * peaks.devices / peaks.memory_bytes <= 1.0
        and (device.clock_mhz is None or _same_clock(device.clock_mhz, peaks))
    ]
    return fitting[0] if len(fitting) == 1 else None


def device_roofline(device: RocmDevice) -> Roofline | None:
    """The speed of light of a device: its share of its package's units, all of the memory that it can use.

    ``None`` for a GPU that is not in the table.
    """
    found = peaks_of(device)
    if found is None:
        return None
    name, peaks = found
    units = device.compute_units or peaks.compute_units // peaks.devices
    clock = 1.0 if device.clock_mhz is None else max(1.0, device.clock_mhz / peaks.clock_mhz)
    part = "" if units == peaks.compute_units else f", {units} of its {peaks.compute_units} compute units"
    share = units / peaks.compute_units * clock
    return _roofline(peaks, share, 1.0 / peaks.devices, f"AMD data sheet of {name}{part}")


def disagreements(device: RocmDevice) -> list[str]:
    """Where the device says something else than its data sheet, half a sentence each."""
    found = peaks_of(device)
    if found is None:
        return [f"the table of peak rates has no {device.title}, so no speed of light is known"]
    name, peaks = found
    told: list[tuple[str, float | None, float]] = [
        ("compute units", device.compute_units, peaks.compute_units / peaks.devices),
        ("XCDs", device.xcds if peaks.devices == 1 else None, peaks.xcds),
        ("bytes of LDS", device.lds_bytes, peaks.lds_bytes),
        ("bytes of L2", device.l2_bytes, peaks.l2_bytes),
    ]
    differing = [f"{value:g} {what} instead of {wanted:g}" for what, value, wanted in told
                 if value is not None and value != wanted]  # fmt: skip
    if device.clock_mhz is not None and not _same_clock(device.clock_mhz, peaks):
        differing.append(f"a peak clock of {device.clock_mhz:g} MHz instead of {peaks.clock_mhz}")
    return [f"the device says {one}, which {name} has by its data sheet" for one in differing]


def _same_clock(clock_mhz: float, peaks: GpuPeaks) -> bool:
    return abs(clock_mhz / peaks.clock_mhz - 1.0) <= _CLOCK_SHARE


def _roofline(peaks: GpuPeaks, share: float, memory_share: float, source: str) -> Roofline:
    return Roofline(
        flops_per_s={dtype: rate * share * 1e12 for dtype, rate in peaks.tflops.items()},
        bandwidth=(BandwidthPoint(0, peaks.terabytes * memory_share * 1e12),),
        source=source,
    )
