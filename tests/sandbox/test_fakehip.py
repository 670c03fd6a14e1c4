"""The fake runtime's own strictness: what a real one need not accept is found out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .fakehip.machine import FakeRocm

# The calls of a program by themselves, without a compiler: `hip` is the library, `new` a place for a handle.
START = """
import ctypes, sys
from ctypes import byref, c_size_t, c_uint, c_void_p
hip, new = ctypes.CDLL(sys.argv[1]), c_void_p()
class Dim(ctypes.Structure): _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]
ONE, NONE = Dim(1, 1, 1), c_void_p()
hip.__hipRegisterFatBinary.restype = c_void_p
bundle = ctypes.create_string_buffer(b"__CLANG_OFFLOAD_BUNDLE__" + (0).to_bytes(8, "little"))
class Wrapper(ctypes.Structure):
    _fields_ = [("magic", c_uint), ("version", c_uint), ("bundle", c_void_p), ("unused", c_void_p)]
wrapper = Wrapper(0x48495046, 1, ctypes.addressof(bundle), None)
def register(): return c_void_p(hip.__hipRegisterFatBinary(byref(wrapper)))
def push(): return hip.__hipPushCallConfiguration(ONE, ONE, c_size_t(0), NONE)
def launch(stub): return hip.hipLaunchKernel(c_void_p(stub), ONE, ONE, None, c_size_t(0), NONE)
def drop(binary): hip.__hipUnregisterFatBinary(binary)
def pop(): return hip.__hipPopCallConfiguration(byref(Dim()), byref(Dim()), byref(new), byref(new))
def name(binary, text=b"kernel"): hip.__hipRegisterFunction(binary, c_void_p(64), text, text, -1, *[None] * 5)
"""


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("hip.hipMalloc(byref(new), 8)", "hipMalloc: before hipInit"),
        ("hip.hipInit(0); hip.hipMalloc(byref(new), 8)", "hipMalloc: before hipSetDevice"),
        ("hip.hipInit(0); hip.hipSetDevice(0); hip.hipStreamSynchronize(None)", "no such stream"),
        ("register(); hip.hipFree(c_void_p(4096))", "hipFree: not allocated"),
        ("register(); hip.hipModuleUnload(c_void_p(4096))", "hipModuleUnload: no such module"),
        ("wrapper.magic = 7; register()", "__hipRegisterFatBinary: no wrapper"),
        ("bundle[0] = b'x'; register()", "__hipRegisterFatBinary: no wrapper"),
        ("name(c_void_p(4096))", "__hipRegisterFunction: binary"),
        ("register(); launch(64)", "hipLaunchKernel: no registered kernel"),
        ("name(register()); push(); launch(64)", "a launch was configured and not made"),
        ("b = register(); name(b); drop(b); register(); launch(64)", "no registered kernel"),
        ("b = register(); push(); drop(b)", "configured and not made"),
        ("b = register(); [drop(b) for _ in 'ab']", "unregistered twice"),
        ("pop()", "no launch was configured"),
    ],
)  # fmt: skip
def test_a_misuse_is_in_the_log(rocm: FakeRocm, calls: str, said: str) -> None:
    with rocm.calls() as log:
        subprocess.run([sys.executable, "-c", START + calls, rocm.library], check=True, timeout=60)
    misuses = [line for line in log if "misuse" in line]
    assert len(misuses) == 1, log
    assert said in misuses[0]


def test_a_code_object_for_another_gpu_is_not_found_in_a_bundle(rocm: FakeRocm) -> None:
    with rocm.calls() as log:
        code = START + "name(register()); print(launch(64))"
        done = subprocess.run(
            [sys.executable, "-c", code, rocm.library], check=True, capture_output=True, timeout=60
        )
    assert done.stdout == b"209\n"
    assert not [line for line in log if "misuse" in line]
    assert log[-1].endswith("exit blocks=0 events=0 streams=0 modules=1")
