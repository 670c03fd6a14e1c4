"""What a device worker is told: one JSON document, which `hip_worker.batch` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..compilation import CodeObject
from ..execution import Fill, KernelLaunch
from ..worker_plan import element_bytes_of
from ..workspace import Workspace
from .arguments import argument_layouts, pack_arguments

__all__ = ["CachePolicy", "write_plan"]


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What the caches hold when a run starts.

    ``cold``: `flush_bytes` were written on the device since its inputs were. ``warm``: its inputs were
    copied into place, on the device, right before.
    """

    name: Literal["cold", "warm"]
    flush_bytes: int


def write_plan(
    code: CodeObject,
    code_bytes: int,
    workspace: Workspace,
    launches: Sequence[KernelLaunch | Fill],
    *,
    count: int,
    policy: CachePolicy,
    pci: str,
) -> bytes:
    """The plan for runs 0 to `count` - 1 of the workspace."""
    layouts = argument_layouts(code.path, code.kernels)
    rows = [list(workspace.placements(run, 1)) for run in range(count)]
    plan = {
        "code_bytes": code_bytes,
        "read_bytes": workspace.file_bytes("read"),
        "write_bytes": workspace.file_bytes("write"),
        "symbols": [kernel.symbol for kernel in code.kernels],
        "regions": [
            {
                "name": place.region.name,
                "bytes": place.page_bytes,
                "lead": place.lead,
                "writable": place.region.access == "write",
            }
            for place in rows[0]
        ],
        "offsets": [[place.offset for place in row] for row in rows],
        "steps": [_step(step, code, layouts, workspace) for step in launches],
        "policy": policy.name,
        "flush_bytes": policy.flush_bytes,
        "pci": pci,
    }
    return json.dumps(plan).encode()


def _step(
    step: KernelLaunch | Fill,
    code: CodeObject,
    layouts: Sequence[Sequence[tuple[int, int]]],
    workspace: Workspace,
) -> dict[str, Any]:
    if isinstance(step, Fill):
        nbytes = workspace.regions[step.region].nbytes
        return {"fill": step.region, "bytes": nbytes, "pattern": element_bytes_of(step).hex()}
    kernel = code.kernels[step.kernel]
    segment = pack_arguments(kernel, layouts[step.kernel], step.arguments)
    return {
        "kernel": step.kernel,
        "grid": step.grid,
        "block": step.block,
        "lds": step.dynamic_lds_bytes,
        "segment": segment.data.hex(),
        "pointers": segment.pointers,
    }
