"""What the runtime says of the devices it sees."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from .hip import Attribute, Hip, HipError

__all__ = ["device_facts"]

# The largest hipDeviceProp_t so far has 1472 bytes; room for what later versions add.
_PROPERTIES_BYTES = 16384
_ARCHITECTURE = re.compile(rb"(gfx[0-9a-f]{3,5})(?:(?::[a-z]+[+-])*)\0")
_NO_DEVICE = 100  # hipErrorNoDevice


def device_facts(hip: Hip) -> dict[str, Any]:
    """``version`` of the runtime and one entry a device."""
    try:
        hip.call("hipInit", 0)
        count = hip.integer("hipGetDeviceCount")
    except HipError as error:
        if error.code != _NO_DEVICE:
            raise
        count = 0
    return {
        "version": hip.integer("hipRuntimeGetVersion"),
        "devices": [_device(hip, index) for index in range(count)],
    }


def _device(hip: Hip, index: int) -> dict[str, Any]:
    memory = ctypes.c_size_t()
    hip.call("hipDeviceTotalMem", ctypes.byref(memory), index)
    return {
        "name": hip.text("hipDeviceGetName", index),
        "arch": _architecture(hip, index),
        "pci": hip.text("hipDeviceGetPCIBusId", index),
        "memory_bytes": memory.value,
        "compute_units": hip.attribute(index, Attribute.COMPUTE_UNITS),
        "xcds": hip.attribute(index, Attribute.XCDS),
        "lds_bytes": hip.attribute(index, Attribute.LDS_BYTES),
        "l2_bytes": hip.attribute(index, Attribute.L2_CACHE_BYTES),
        "wave_size": hip.attribute(index, Attribute.WAVE_SIZE),
        "clock_khz": hip.attribute(index, Attribute.CLOCK_RATE_KHZ),
        "memory_clock_khz": hip.attribute(index, Attribute.MEMORY_CLOCK_KHZ),
        "memory_bus_bits": hip.attribute(index, Attribute.MEMORY_BUS_BITS),
    }


def _architecture(hip: Hip, index: int) -> str:
    """``gfx942`` and the like. Looked for in the properties, for where the name stands there has changed."""
    call = "hipGetDevicePropertiesR0600"
    if not hip.has(call):
        call = "hipGetDeviceProperties"
    buffer = ctypes.create_string_buffer(_PROPERTIES_BYTES)
    hip.call(call, buffer, index)
    found = _ARCHITECTURE.search(buffer.raw)
    return found[1].decode() if found else ""
