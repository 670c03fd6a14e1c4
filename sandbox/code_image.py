"""A CPU code object, read from its ELF file and checked, never loaded into this process.

The file is the output of a linker that read a candidate's text, so nothing in it is believed: it may only ask
for memory inside the image's own range, and it has neither an interpreter nor a dynamic section to run first.
"""

from __future__ import annotations

import fcntl
import functools
import mmap
import os
import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from .errors import SandboxError

__all__ = ["IMAGE_END", "IMAGE_START", "CodeImage", "Segment", "load_image"]

IMAGE_START, IMAGE_END = 0x1000_0000, 0x2000_0000

_PAGE = mmap.PAGESIZE
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_IMAGE = struct.Struct("<QQQQ")  # KsImage of abi.h
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_PF_EXECUTE, _PF_WRITE, _PF_READ = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Segment:
    """Pages of the image: `nbytes` at `address`, from `offset` of its file, or zeros if that is ``None``."""

    address: int
    nbytes: int
    offset: int | None
    protection: int


@final
class CodeImage:
    """The image's segments, and a sealed memory file that holds their contents page by page."""

    def __init__(self, entry: int, segments: tuple[Segment, ...], fd: int) -> None:
        self.entry = entry
        self.segments = segments
        self.fd = fd
        weakref.finalize(self, os.close, fd)


def load_image(path: Path) -> CodeImage:
    """The image at `path`, in memory of its own: where its pages lie is drawn anew for every worker.

    Raises `SandboxError` when it is not acceptable.
    """
    try:
        status = path.stat()
        entry, segments, contents = _load(path, status.st_mtime_ns, status.st_ino)
    except (OSError, struct.error, ValueError) as error:
        raise SandboxError(
            f"The code object {path} cannot be used ({error}); delete it to have it made again."
        ) from error

    fd = os.memfd_create("ks-image", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    image = CodeImage(entry, segments, fd)
    os.write(fd, contents)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return image


@functools.lru_cache(maxsize=64)
def _load(
    path: Path,
    modified_ns: int,  # noqa: ARG001 - part of the cache's key
    inode: int,  # noqa: ARG001
) -> tuple[int, tuple[Segment, ...], bytes]:
    """Entry, segments, and the pages that are stored, one segment after the other."""
    data = path.read_bytes()
    entry, headers = _program_headers(data)
    segments: list[Segment] = []
    pages = bytearray()
    for flags, offset, address, file_bytes, memory_bytes in headers:
        contents = data[offset : offset + file_bytes]
        if len(contents) != file_bytes:
            raise ValueError("it is cut off")
        protection = _protection(flags)
        stored, whole = _pages(file_bytes), _pages(memory_bytes)
        if stored:
            segments.append(Segment(address, stored, len(pages), protection))
            pages += contents.ljust(stored, b"\0")
        if whole > stored:
            segments.append(Segment(address + stored, whole - stored, None, protection))
    return entry, tuple(segments), bytes(pages or bytes(_PAGE))


def _program_headers(data: bytes) -> tuple[int, list[tuple[int, int, int, int, int]]]:
    magic, kind, machine, _, entry, table, _, _, _, size, count, *_ = _HEADER.unpack_from(data)
    if magic[:6] != b"\x7fELF\x02\x01" or kind != 2 or machine != 62 or size != _SEGMENT.size:
        raise ValueError("it is no static x86-64 image")
    loaded: list[tuple[int, int, int, int, int]] = []
    end = IMAGE_START
    for index in range(count):
        kind, flags, offset, address, _, file_bytes, memory_bytes, _ = _SEGMENT.unpack_from(
            data, table + index * size
        )
        if kind in (_PT_DYNAMIC, _PT_INTERP):
            raise ValueError("it wants a dynamic loader")
        if kind != _PT_LOAD or memory_bytes == 0:
            continue
        if (
            address % _PAGE
            or address < end
            or address + memory_bytes > IMAGE_END
            or file_bytes > memory_bytes
        ):
            raise ValueError("a segment lies outside of the image's range")
        loaded.append((flags, offset, address, file_bytes, memory_bytes))
        end = address + memory_bytes
    _check_entry(data, entry, loaded)
    return entry, loaded


def _check_entry(data: bytes, entry: int, loaded: Sequence[tuple[int, int, int, int, int]]) -> None:
    """What the worker reads there: a function to call, and a table that it fills before it is locked up."""
    for _, offset, address, stored, _ in loaded:
        if address <= entry and entry + _IMAGE.size <= address + stored:
            _, run, libm, names = _IMAGE.unpack_from(data, offset + entry - address)
            break
    else:
        raise ValueError("its entry is not in it")
    if not any(flags & _PF_EXECUTE and start <= run < start + size for flags, _, start, _, size in loaded):
        raise ValueError("its entry leads out of it")
    if not any(
        flags & _PF_WRITE and start <= libm and libm + 8 * names <= start + size
        for flags, _, start, _, size in loaded
    ):
        raise ValueError("its table of functions is not in it")


def _pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE) * _PAGE


def _protection(flags: int) -> int:
    if flags & _PF_WRITE and flags & _PF_EXECUTE:
        raise ValueError("a segment is both writable and executable")
    return (
        (mmap.PROT_READ if flags & _PF_READ else 0)
        | (mmap.PROT_WRITE if flags & _PF_WRITE else 0)
        | (mmap.PROT_EXEC if flags & _PF_EXECUTE else 0)
    )
