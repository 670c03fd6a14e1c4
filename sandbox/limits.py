"""What one compute unit can hold of a block, on every supported device."""

from __future__ import annotations

from .compilation import EntryPoint
from .compile_step import BuildError

__all__ = ["LDS_BYTES", "MAX_THREADS", "check_block"]

# Local data share per compute unit and threads per work-group: CDNA3 ISA guide, sections 1.2 and 3.
LDS_BYTES = 65536
MAX_THREADS = 1024


def check_block(entry: EntryPoint, static_lds_bytes: int, max_threads: int = MAX_THREADS) -> None:
    """Raise `BuildError` (``limits``) when the largest block that the plan launches cannot run."""
    lds = static_lds_bytes + entry.dynamic_lds_bytes
    if lds > LDS_BYTES:
        parts = f" ({static_lds_bytes} static)" if entry.dynamic_lds_bytes else ""
        reason = f"{entry.kernel} uses {lds} bytes of LDS{parts} but a block may use {LDS_BYTES}"
        raise BuildError("limits", f"{reason}; make its tiles smaller.", "")
    if entry.threads > max_threads:
        bound = "a block may have" if max_threads == MAX_THREADS else "its __launch_bounds__ allows"
        reason = f"{entry.kernel} is launched with {entry.threads} threads a block but {bound} {max_threads}."
        raise BuildError("limits", reason, "")
