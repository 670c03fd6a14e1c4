"""What a GPU code object says of its kernels: the metadata note of its ELF file.

The note is described in LLVM's "User Guide for AMDGPU Backend", section "Code Object V3 Metadata".
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__all__ = ["read_metadata"]

_NT_AMDGPU_METADATA = (32, "NT_AMDGPU_METADATA")  # what pyelftools makes of it depends on its version


def read_metadata(path: Path) -> dict[str, dict[str, Any]]:
    """The metadata of each kernel in the code object, by its linker name."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import NoteSection

    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if not isinstance(section, NoteSection):
                continue
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] in _NT_AMDGPU_METADATA:
                    return _by_name(note["n_descdata"])
    return {}


def _by_name(packed: bytes) -> dict[str, dict[str, Any]]:
    # msgpack has no type information; imported by name it is Any, and the types stay in this function.
    metadata: dict[str, Any] = importlib.import_module("msgpack").unpackb(packed)
    kernels: list[dict[str, Any]] = metadata.get("amdhsa.kernels", [])
    return {str(kernel[".name"]): kernel for kernel in kernels}
