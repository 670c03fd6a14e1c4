"""Clock and temperature of the device, through libamd_smi or the older librocm_smi64, where one is there.

What neither tells is absent from a sample; nothing is estimated. Not covered: virtual functions, where the
libraries answer that they are not supported.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Smi", "open_smi"]

Sample = dict[str, float]
_AMD_GPUS = 2  # AMDSMI_INIT_AMD_GPUS
_GRAPHICS, _MEMORY = 0, 4  # AMDSMI_CLK_TYPE_GFX, _MEM; RSMI_CLK_TYPE_SYS, _MEM
_HOTSPOT, _CURRENT = 1, 0  # the temperature's sensor and metric, the same in both libraries
_MOST_FREQUENCIES = 64


class Smi(Protocol):
    def sample(self) -> Sample:
        """``clock_mhz``, ``memory_clock_mhz`` and ``hotspot_c``, as far as they are told."""
        ...


class _Nothing:
    def sample(self) -> Sample:
        return {}


class _AmdSmi:
    def __init__(self, library: Any, bdf: int) -> None:
        library.amdsmi_init.argtypes = (c_uint64,)
        library.amdsmi_get_processor_handle_from_bdf.argtypes = (c_uint64, POINTER(c_void_p))
        library.amdsmi_get_clock_info.argtypes = (c_void_p, c_int, c_void_p)
        library.amdsmi_get_temp_metric.argtypes = (c_void_p, c_int, c_int, POINTER(c_int64))
        self._library, self._handle = library, c_void_p()
        if library.amdsmi_init(_AMD_GPUS) or library.amdsmi_get_processor_handle_from_bdf(
            _packed(bdf), byref(self._handle)
        ):
            raise OSError("libamd_smi does not know the device")

    def sample(self) -> Sample:
        found: Sample = {}
        for name, kind in (("clock_mhz", _GRAPHICS), ("memory_clock_mhz", _MEMORY)):
            # amdsmi_clk_info_t begins with the current clock in every version; later ones are larger.
            info = (c_uint32 * 64)()
            if self._library.amdsmi_get_clock_info(self._handle, kind, info) == 0:
                found[name] = float(info[0])
        degrees = c_int64()
        if self._library.amdsmi_get_temp_metric(self._handle, _HOTSPOT, _CURRENT, byref(degrees)) == 0:
            found["hotspot_c"] = float(degrees.value)
        return found


class _RocmSmi:
    def __init__(self, library: Any, bdf: int) -> None:
        library.rsmi_init.argtypes = (c_uint64,)
        library.rsmi_num_monitor_devices.argtypes = (POINTER(c_uint32),)
        library.rsmi_dev_pci_id_get.argtypes = (c_uint32, POINTER(c_uint64))
        library.rsmi_dev_gpu_clk_freq_get.argtypes = (c_uint32, c_int, c_void_p)
        library.rsmi_dev_temp_metric_get.argtypes = (c_uint32, c_uint32, c_int, POINTER(c_int64))
        self._library = library
        count, found = c_uint32(), c_uint64()
        if library.rsmi_init(0) or library.rsmi_num_monitor_devices(byref(count)):
            raise OSError("librocm_smi64 does not start")
        for index in range(count.value):
            # Bits 28 to 31 are the partition, which the bus address does not have.
            if library.rsmi_dev_pci_id_get(index, byref(found)) == 0 and found.value & ~(15 << 28) == bdf:
                self._index = index
                return
        raise OSError("librocm_smi64 does not know the device")

    def sample(self) -> Sample:
        found: Sample = {}
        for name, kind in (("clock_mhz", _GRAPHICS), ("memory_clock_mhz", _MEMORY)):
            words = (c_uint64 * (_MOST_FREQUENCIES + 2))()
            if self._library.rsmi_dev_gpu_clk_freq_get(self._index, kind, words) == 0:
                hertz = current_frequency(bytes(words))
                if hertz is not None:
                    found[name] = hertz / 1e6
        milli = c_int64()
        if self._library.rsmi_dev_temp_metric_get(self._index, _HOTSPOT, _CURRENT, byref(milli)) == 0:
            found["hotspot_c"] = milli.value / 1000
        return found


def current_frequency(raw: bytes) -> float | None:
    """The current one of an rsmi_frequencies_t: count and index, before which ROCm 6 has put a flag."""
    for start, table in ((0, 8), (4, 16)):
        count, current = (int.from_bytes(raw[at : at + 4], "little") for at in (start, start + 4))
        if 0 < count <= _MOST_FREQUENCIES // 2 + 1 and current < count:
            at = table + 8 * current
            return float(int.from_bytes(raw[at : at + 8], "little"))
    return None


def open_smi(hip_library: str, pci: str) -> Smi:
    """The library beside the runtime, else the system's; one that tells nothing when there is none."""
    bdf = _bdf(pci)
    for name, kind in (("libamd_smi.so", _AmdSmi), ("librocm_smi64.so", _RocmSmi)):
        folder = Path(hip_library).parent
        for path in (folder / name, *sorted(folder.glob(f"{name}.*"), reverse=True), Path(name)):
            try:
                return kind(ctypes.CDLL(str(path)), bdf)
            except (OSError, AttributeError):
                continue
    return _Nothing()


def _bdf(pci: str) -> int:
    """``0000:05:00.0`` as librocm_smi64 writes it: domain, bus, device and function from high to low."""
    domain, bus, rest = pci.split(":")
    device, function = rest.split(".")
    return int(domain, 16) << 32 | int(bus, 16) << 8 | int(device, 16) << 3 | int(function, 16)


def _packed(bdf: int) -> int:
    """The same as an amdsmi_bdf_t, whose domain follows the bus at once."""
    return bdf >> 32 << 16 | bdf & 0xFFFF
