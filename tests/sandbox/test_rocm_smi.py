"""How the worker reads structures whose layout has changed between versions of ROCm."""

from __future__ import annotations

import struct

import pytest

from kernel_scientist.sandbox.rocm.hip_worker.smi import current_frequency

MHZ = [500_000_000, 1_300_000_000, 2_100_000_000]


@pytest.mark.parametrize("current", [0, 1, 2])
def test_the_current_frequency_is_found_in_the_old_layout(current: int) -> None:
    raw = struct.pack("<II3Q", 3, current, *MHZ)
    assert current_frequency(raw.ljust(600, b"\0")) == MHZ[current]


@pytest.mark.parametrize("deep_sleep", [0, 1])
@pytest.mark.parametrize("current", [0, 1, 2])
def test_the_current_frequency_is_found_behind_the_flag_of_rocm_6(current: int, deep_sleep: int) -> None:
    raw = struct.pack("<B3xII4x3Q", deep_sleep, 3, current, *MHZ)
    assert current_frequency(raw.ljust(600, b"\0")) == MHZ[current]


def test_no_current_frequency_is_none() -> None:
    assert current_frequency(bytes(600)) is None
    assert current_frequency(struct.pack("<II3Q", 3, 33, *MHZ).ljust(600, b"\0")) is None
