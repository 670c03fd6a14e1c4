"""A kernel's argument segment: where each argument lies, from the code object, and what is written there.

The compile-time check of the signature has settled what an argument is (pointer, integer or real); how wide
it is and where it lies only the code object's metadata says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..compilation import BufferArgument, CompiledKernel
from ..errors import InternalError
from ..execution import Pointer
from ..gpu_metadata import read_metadata
from ..representations import is_integer

__all__ = ["Segment", "argument_layouts", "pack_arguments"]

_REALS = {4: ctypes.c_float, 8: ctypes.c_double}


@dataclass(frozen=True, slots=True)
class Segment:
    """`data` with zeros where pointers go; `pointers` are (offset, number of the region)."""

    data: bytes
    pointers: tuple[tuple[int, int], ...]


def argument_layouts(path: Path, kernels: Sequence[CompiledKernel]) -> list[list[tuple[int, int]]]:
    """(offset, size) of every argument of every kernel; InternalError when the metadata has others."""
    metadata = read_metadata(path)
    return [_layout(kernel, metadata[kernel.symbol]) for kernel in kernels]


def _layout(kernel: CompiledKernel, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    explicit = [one for one in metadata[".args"] if not str(one[".value_kind"]).startswith("hidden")]
    if len(explicit) != len(kernel.entry.arguments):
        raise InternalError(f"{kernel.entry.kernel} has {len(explicit)} arguments in its code object.")
    return [(int(one[".offset"]), int(one[".size"])) for one in explicit]


def pack_arguments(
    kernel: CompiledKernel, layout: Sequence[tuple[int, int]], values: Sequence[Pointer | int | float]
) -> Segment:
    """The segment for one launch."""
    size = max((offset + width for offset, width in layout), default=0)
    data = bytearray(-(-size // 8) * 8)
    pointers: list[tuple[int, int]] = []
    for argument, (offset, width), value in zip(kernel.entry.arguments, layout, values, strict=True):
        if isinstance(value, Pointer):
            pointers.append((offset, value.region))
            continue
        assert not isinstance(argument, BufferArgument)
        if is_integer(argument.dtype):
            mask = (1 << 8 * width) - 1
            data[offset : offset + width] = (int(value) & mask).to_bytes(width, "little")
        else:
            # Beyond the range of a float it is an infinity, as a conversion in C is.
            data[offset : offset + width] = bytes(_REALS[width](value))
    return Segment(bytes(data), tuple(pointers))
