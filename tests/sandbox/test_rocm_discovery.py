"""Which devices the ROCm runtime shows, and what is said when it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.rocm import devices, find_runtime
from kernel_scientist.sandbox.rocm.discovery import require_runtime

from .fakehip.machine import FakeRocm


def test_a_device_says_what_it_is(rocm: FakeRocm) -> None:
    (device,) = devices()
    assert (device.name, device.arch, device.compute_units, device.xcds) == (
        "AMD Instinct MI300X",
        "gfx942",
        304,
        8,
    )
    assert (device.lds_bytes, device.l2_bytes, device.wave_size) == (65536, 4 << 20, 64)
    assert (device.clock_mhz, device.memory_bus_bits, device.runtime) == (2100.0, 8192, "7.0.51831")


def test_what_a_runtime_does_not_know_is_not_made_up(rocm: FakeRocm) -> None:
    rocm.configure(xcds=-1, name="-")
    (device,) = devices()
    assert device.xcds is None
    assert device.title == "AMD gfx942"


@pytest.mark.parametrize(
    ("rocr", "hip", "buses"),
    [
        (None, None, [0, 1, 2, 3]),
        ("2,3", None, [2, 3]),
        (None, "1", [1]),
        ("3,2,0", "2,0", [0, 3]),
    ],
)
def test_variables_select_devices_and_every_token_selects_its_own(
    rocm: FakeRocm, monkeypatch: pytest.MonkeyPatch, rocr: str | None, hip: str | None, buses: list[int]
) -> None:
    rocm.configure(devices=4)
    for name, value in (("ROCR_VISIBLE_DEVICES", rocr), ("HIP_VISIBLE_DEVICES", hip)):
        if value is not None:
            monkeypatch.setenv(name, value)
    found = devices()
    assert [device.pci for device in found] == [f"0000:{5 + 16 * bus:02x}:00.0" for bus in buses]
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    for device in found:
        monkeypatch.setenv("ROCR_VISIBLE_DEVICES", device.token)
        assert [alone.pci for alone in devices()] == [device.pci]


def test_no_device_is_no_error(rocm: FakeRocm) -> None:
    rocm.configure(devices=0)
    assert devices() == ()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("fail hipInit 35", "hipInit: hipErrorInsufficientDriver"),
        ("fail hipGetDeviceCount 999", "hipErrorUnknown"),
        ("die hipInit", "ended with status"),
    ],
)
def test_a_runtime_that_fails_is_quoted(rocm: FakeRocm, fault: str, said: str) -> None:
    rocm.configure(fault)
    with pytest.raises(UnusableEnvironment, match=said):
        devices()


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libamdhip64.so"
    library.write_text("not a library")
    monkeypatch.setenv("KERNEL_SCIENTIST_HIP_LIBRARY", str(library))
    with pytest.raises(UnusableEnvironment, match="cannot be loaded"):
        devices()


def test_the_named_library_comes_first(
    rocm: FakeRocm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_runtime() == rocm.root / "lib/libamdhip64.so"
    named = tmp_path / "libamdhip64.so.7"
    os.link(rocm.library, named)
    monkeypatch.setenv("KERNEL_SCIENTIST_HIP_LIBRARY", str(named))
    assert find_runtime() == named
    named.unlink()
    with pytest.raises(UsageError, match="there is no file"):
        find_runtime()


def test_without_rocm_there_are_no_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    if find_runtime() is not None:
        pytest.skip("this machine has ROCm")
    assert devices() == ()
    with pytest.raises(UnusableEnvironment, match="No ROCm runtime"):
        require_runtime()
