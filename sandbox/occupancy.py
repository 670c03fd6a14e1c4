"""How many waves of a kernel fit on a SIMD of a CDNA compute unit, and what stops more.

Figures for CDNA2 and CDNA3 (gfx90a, gfx942), from AMD's MI200 and MI300 instruction set guides and the
register model in LLVM's AMDGPUBaseInfo.cpp: a compute unit has 4 SIMDs; a SIMD holds at most 8 waves of 64
lanes, 512 registers a lane that VGPRs and AGPRs share (allocated by 8) and 800 scalar registers (by 16); a
compute unit has 64 KiB of LDS (allocated by 512 bytes) and at most 16 blocks of more than one wave. CDNA4
(gfx950) has 160 KiB of LDS, allocated by 1280 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Occupancy", "occupancy"]

WAVE = 64
_SIMDS = 4
_WAVES = 8
_REGISTERS, _REGISTER_GRANULE = 512, 8
_SCALARS, _SCALAR_GRANULE = 800, 16
_BLOCKS = 16
_LDS = {"gfx90a": (65536, 512), "gfx942": (65536, 512), "gfx950": (163840, 1280)}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Waves per SIMD (rounded up), and which resource is the first to run out."""

    waves: int
    limited_by: str


def occupancy(arch: str, *, registers: int, scalars: int, lds_bytes: int, threads: int) -> Occupancy:
    """For blocks of `threads` that use `lds_bytes` each; `registers` is a lane's VGPRs and AGPRs together.

    `limited_by` is ``vgprs``, ``sgprs``, ``lds``, ``block size`` (blocks are placed whole) or ``hardware``,
    the limit of 8 waves. A tie is named for the resource that a programmer has most say in.
    """
    waves_per_block = -(-max(1, threads) // WAVE)
    by_registers = min(_WAVES, _REGISTERS // _rounded(registers, _REGISTER_GRANULE))
    by_scalars = min(_WAVES, _SCALARS // _rounded(scalars, _SCALAR_GRANULE))
    capacity, granule = _LDS[arch]
    most_blocks = _BLOCKS if waves_per_block > 1 else _WAVES * _SIMDS
    unlimited = min(most_blocks, _SIMDS * _WAVES // waves_per_block)
    blocks = {
        "lds": capacity // _rounded(lds_bytes, granule) if lds_bytes else unlimited,
        "vgprs": _SIMDS * by_registers // waves_per_block,
        "sgprs": _SIMDS * by_scalars // waves_per_block,
    }
    fitting = min(unlimited, *blocks.values())
    waves = min(_WAVES, -(-fitting * waves_per_block // _SIMDS))
    if waves >= _WAVES:
        return Occupancy(_WAVES, "hardware")
    if fitting == unlimited:
        return Occupancy(waves, "block size")
    return Occupancy(waves, next(name for name, count in blocks.items() if count == fitting))


def _rounded(count: int, granule: int) -> int:
    return max(granule, -(-count // granule) * granule)
