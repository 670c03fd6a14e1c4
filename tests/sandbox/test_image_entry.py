"""What the worker reads at an image's entry, before it locks itself up, is checked by the judge."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.code_image import load_image
from kernel_scientist.sandbox.compilation import CodeObject
from kernel_scientist.sandbox.errors import SandboxError

SOURCE = "__global__ void scale(const float* x, float* y) { y[threadIdx.x] = sinf(x[threadIdx.x]); }"
RUN, TABLE, NAMES = 8, 16, 24


@pytest.fixture(scope="module")
def image(device: Any) -> bytes:
    x = np.zeros(4, dtype=np.float32)
    code: CodeObject = device.compile(SOURCE, "scale", {"x": x}, {"y": x}, [])
    return code.path.read_bytes()


def entry_offset(data: bytes) -> int:
    """Where the entry of an ELF file is in it, by its program headers."""
    entry, table = struct.unpack_from("<QQ", data, 24)
    (count,) = struct.unpack_from("<H", data, 56)
    for index in range(count):
        kind, _, offset, address, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", data, table + 56 * index)
        if kind == 1 and address <= entry < address + size:
            return int(offset + entry - address)
    raise AssertionError("the entry is nowhere")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(RUN, 0x5F00_0000, id="a function outside of the image"),
        pytest.param(TABLE, 0x5F00_0000, id="a table outside of the image"),
        pytest.param(TABLE, 0x1000_0000, id="a table among constants"),
        pytest.param(NAMES, 1 << 40, id="a table that does not fit"),
    ],
)
def test_an_entry_that_leads_elsewhere_is_refused(
    image: bytes, tmp_path: Path, field: int, value: int
) -> None:
    changed = bytearray(image)
    struct.pack_into("<Q", changed, entry_offset(image) + field, value)
    path = tmp_path / "kernel.elf"
    path.write_bytes(changed)
    with pytest.raises(SandboxError, match="cannot be used"):
        load_image(path)


def test_the_image_as_linked_is_accepted(image: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(image)
    assert load_image(path).segments
