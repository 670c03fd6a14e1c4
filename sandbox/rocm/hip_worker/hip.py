"""The calls of libamdhip64 that the worker makes, with the types that hip_runtime_api.h gives them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ushort, c_void_p
from typing import Any

__all__ = ["Attribute", "Hip", "HipError"]

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3  # hipMemcpyKind
NON_BLOCKING = 1  # hipStreamNonBlocking
# How arguments are passed as one buffer: HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END.
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 3

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "hipInit": (c_uint,),
    "hipRuntimeGetVersion": (POINTER(c_int),),
    "hipGetDeviceCount": (POINTER(c_int),),
    "hipSetDevice": (c_int,),
    "hipDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "hipDeviceGetName": (c_char_p, c_int, c_int),
    "hipDeviceGetPCIBusId": (c_char_p, c_int, c_int),
    "hipDeviceTotalMem": (POINTER(c_size_t), c_int),
    "hipGetDevicePropertiesR0600": (c_void_p, c_int),
    "hipGetDeviceProperties": (c_void_p, c_int),
    "hipStreamCreateWithFlags": (POINTER(c_void_p), c_uint),
    "hipStreamDestroy": (c_void_p,),
    "hipModuleLoadData": (POINTER(c_void_p), c_void_p),
    "hipModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "hipModuleUnload": (c_void_p,),
    "hipModuleLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "hipMalloc": (POINTER(c_void_p), c_size_t),
    "hipFree": (c_void_p,),
    "hipMemcpy": (c_void_p, c_void_p, c_size_t, c_int),
    "hipMemcpyAsync": (c_void_p, c_void_p, c_size_t, c_int, c_void_p),
    "hipMemsetAsync": (c_void_p, c_int, c_size_t, c_void_p),
    "hipMemsetD16Async": (c_void_p, c_ushort, c_size_t, c_void_p),
    "hipMemsetD32Async": (c_void_p, c_int, c_size_t, c_void_p),
    "hipEventCreate": (POINTER(c_void_p),),
    "hipEventDestroy": (c_void_p,),
    "hipEventRecord": (c_void_p, c_void_p),
    "hipEventSynchronize": (c_void_p,),
    "hipEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "hipGetLastError": (),
}


class Attribute:
    """Members of hipDeviceAttribute_t; their numbers have not changed since ROCm 5.3."""

    CLOCK_RATE_KHZ = 5
    L2_CACHE_BYTES = 19
    MEMORY_BUS_BITS = 59
    MEMORY_CLOCK_KHZ = 60
    COMPUTE_UNITS = 63
    LDS_BYTES = 74
    WAVE_SIZE = 87
    XCDS = 10018  # hipDeviceAttributeNumberOfXccs, since ROCm 6.0


class HipError(Exception):
    """A call that did not return hipSuccess."""

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call}: {name} ({code}): {text}")
        self.call, self.code, self.name, self.text = call, code, name, text


class Hip:
    """The runtime library; OSError when it cannot be loaded."""

    def __init__(self, library: str) -> None:
        self._library: Any = ctypes.CDLL(library)
        for name, arguments in _SIGNATURES.items():
            if self.has(name):
                function = getattr(self._library, name)
                function.argtypes, function.restype = arguments, c_int
        for name in ("hipGetErrorName", "hipGetErrorString"):
            function = getattr(self._library, name)
            function.argtypes, function.restype = (c_int,), c_char_p

    def has(self, name: str) -> bool:
        return hasattr(self._library, name)

    def call(self, name: str, *arguments: Any) -> None:
        """Call and raise HipError unless it succeeded."""
        code = int(getattr(self._library, name)(*arguments))
        if code:
            raise HipError(
                name, code, self._text("hipGetErrorName", code), self._text("hipGetErrorString", code)
            )

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """Call something whose first parameter receives what it makes."""
        made = c_void_p()
        self.call(name, byref(made), *arguments)
        return made

    def integer(self, name: str, *arguments: Any) -> int:
        """Call something whose first parameter receives an int."""
        value = c_int()
        self.call(name, byref(value), *arguments)
        return value.value

    def attribute(self, device: int, number: int) -> int | None:
        """An attribute of the device, or ``None`` where this runtime does not know it."""
        try:
            return self.integer("hipDeviceGetAttribute", number, device)
        except HipError:
            return None

    def text(self, name: str, device: int) -> str:
        """Call something that fills a text about a device."""
        buffer = ctypes.create_string_buffer(256)
        self.call(name, buffer, len(buffer), device)
        return buffer.value.decode(errors="replace")

    def elapsed_ms(self, start: c_void_p, stop: c_void_p) -> float:
        value = c_float()
        self.call("hipEventElapsedTime", byref(value), start, stop)
        return value.value

    def launch(
        self,
        function: c_void_p,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        lds_bytes: int,
        stream: c_void_p,
        arguments: Any,
    ) -> None:
        """Launch with `arguments`, a ctypes array that holds the kernel's argument segment."""
        size = c_size_t(ctypes.sizeof(arguments))
        extra = (c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(arguments), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        self.call("hipModuleLaunchKernel", function, *grid, *block, lds_bytes, stream, None, extra)

    def _text(self, name: str, code: int) -> str:
        value: bytes | None = getattr(self._library, name)(code)
        return (value or b"?").decode(errors="replace")
