"""What the GPU compiler makes of a kernel: registers, LDS, scratch, occupancy, instruction mix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["KernelResources"]


@dataclass(frozen=True, slots=True)
class KernelResources:
    """Per-kernel resources on a CDNA GPU; registers are per lane (work-item), memory in bytes.

    `lds_bytes` is static and dynamic LDS of a block. `occupancy` is in waves per SIMD (of 8), for the largest
    block launched; `limited_by` names what bounds it: ``vgprs``, ``sgprs``, ``lds``, ``block size`` or
    ``hardware``. `instructions` counts static instructions by group: ``mfma``, ``global_load``,
    ``global_store``, ``lds_read``, ``lds_write``, ``lds_shuffle``, ``scratch``, ``valu``, ``salu``,
    ``atomic``, ``barrier``, ``waitcnt``, ``branch``.
    """

    kernel: str
    arch: str
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds_bytes: int
    scratch_bytes: int
    occupancy: int
    limited_by: str
    instructions: Mapping[str, int] = field(default_factory=dict[str, int])
