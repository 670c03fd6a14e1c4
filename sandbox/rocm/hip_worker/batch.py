"""One batch: load the code object, then every run on inputs put into place for it alone, timed by events.

The order of calls is a contract (docs/mi300-calls.md). A process may be started before there is a batch
for it: it starts the runtime, says so and waits for its plan, and touches no device before. Before "go"
nothing of the candidate runs. For each run the buffers of all regions, guards included, are written from the
judge's copies; the caches are brought into the state that the policy names; a pair of events of the run's own
encloses the plan; then everything is read back, outputs into the judge's memory and inputs to be compared,
since a GPU has no read-only memory.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import time
from typing import Any

from .hip import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, NON_BLOCKING, Hip, HipError
from .host import Memory, differs, lock_down, waited_ns
from .smi import open_smi

__all__ = ["serve"]

_CALIBRATIONS = 5


_FILES = ("plan", "code", "read", "write")


def serve(library: str, channel_fd: int, reply_fd: int) -> int:
    """Answer in lines of JSON: ``started``; for a plan ``ready``, then ``done``; or ``failed`` at any time.

    The plan comes through the channel as one byte with four files: itself, the code object, and the judge's
    memory to read from and to write to. A channel that ends means that there is nothing (more) to do.
    """
    lock_down()
    channel = socket.socket(fileno=channel_fd)
    batch: _Batch | None = None
    try:
        try:
            hip = Hip(library)
            hip.call("hipInit", 0)
            hip.integer("hipGetDeviceCount")
            _answer(reply_fd, {"started": True})
            _, files, _, _ = socket.recv_fds(channel, 1, len(_FILES))
            if not files:
                return 0
            batch = _Batch(hip, library, dict(zip(_FILES, files, strict=True)))
        except OSError as error:
            _answer(reply_fd, {"failed": {"phase": "start", "text": str(error)}})
            return 1
        _answer(reply_fd, {"ready": batch.prepare()})
        if channel.recv(1) != b"G":
            return 0
        _answer(reply_fd, {"done": batch.run()})
        batch.clean()
    except HipError as error:
        said = {"call": error.call, "code": error.code, "name": error.name, "text": error.text}
        phase, run = (batch.phase, batch.run_number) if batch is not None else ("start", 0)
        _answer(reply_fd, {"failed": {"phase": phase, "run": run, **said}})
        return 1
    return 0


def _answer(reply_fd: int, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(reply_fd, data) :]


class _Batch:
    def __init__(self, hip: Hip, library: str, files: dict[str, int]) -> None:
        with os.fdopen(files["plan"]) as file:
            plan: dict[str, Any] = json.load(file)
        self.phase = "start"
        self.run_number = 0
        self._hip = hip
        self._library = library
        self._plan = plan
        self._code_fd = files["code"]
        self._regions: list[dict[str, Any]] = plan["regions"]
        self._host = {
            True: Memory(files["write"], plan["write_bytes"], writable=True),
            False: Memory(files["read"], plan["read_bytes"], writable=False),
        }
        self._count = len(plan["offsets"])
        self._functions: list[ctypes.c_void_p] = []
        self._allocated: list[ctypes.c_void_p] = []
        self._events: list[tuple[ctypes.c_void_p, ctypes.c_void_p]] = []

    def prepare(self) -> dict[str, Any]:
        """Everything up to the first launch; what a run costs without one, in nanoseconds."""
        hip, plan = self._hip, self._plan
        hip.call("hipSetDevice", 0)
        self._stream = hip.handle("hipStreamCreateWithFlags", NON_BLOCKING)
        self.phase = "load"
        code = Memory(self._code_fd, plan["code_bytes"], writable=False)
        self._module = hip.handle("hipModuleLoadData", code.at(0))
        self._functions = [
            hip.handle("hipModuleGetFunction", self._module, symbol.encode()) for symbol in plan["symbols"]
        ]
        self.phase = "allocate"
        self._buffers = [self._allocate(region["bytes"]) for region in self._regions]
        if plan["policy"] == "cold":
            self._flush = self._allocate(plan["flush_bytes"])
        else:
            self._staging = [self._allocate(region["bytes"]) for region in self._regions]
        self._steps = [self._step(step) for step in plan["steps"]]
        self.phase = "start"
        self._events = [
            (hip.handle("hipEventCreate"), hip.handle("hipEventCreate")) for _ in range(self._count + 1)
        ]
        self._smi = open_smi(self._library, plan["pci"])
        return {"empty_ns": [self._calibrate(number) for number in range(_CALIBRATIONS)]}

    def run(self) -> dict[str, Any]:
        """Every run; times, and what of the judge's own buffers was not left as it was."""
        self.phase = "run"
        sensors = [self._smi.sample()]
        event_ms: list[float] = []
        wall_ns: list[int] = []
        waits_ns: list[int] = []
        changed: dict[str, int] = {}
        scratch = ctypes.create_string_buffer(max(region["bytes"] for region in self._regions))
        for number, offsets in enumerate(self._plan["offsets"]):
            self.run_number = number
            self._write(offsets)
            milliseconds, nanoseconds, waited = self._timed(number)
            event_ms.append(milliseconds)
            wall_ns.append(nanoseconds)
            waits_ns.append(waited)
            for name in self._read_back(offsets, scratch):
                changed.setdefault(name, number)
        sensors.append(self._smi.sample())
        return {
            "event_ms": event_ms,
            "wall_ns": wall_ns,
            "waited_ns": waits_ns,
            "changed": changed,
            "sensors": sensors,
        }

    def clean(self) -> None:
        """Give everything back, so that a fault which came late is heard of."""
        self.phase = "clean"
        hip = self._hip
        for pair in self._events:
            for event in pair:
                hip.call("hipEventDestroy", event)
        for pointer in self._allocated:
            hip.call("hipFree", pointer)
        hip.call("hipModuleUnload", self._module)
        hip.call("hipStreamDestroy", self._stream)

    def _allocate(self, nbytes: int) -> ctypes.c_void_p:
        self._allocated.append(self._hip.handle("hipMalloc", nbytes))
        return self._allocated[-1]

    def _calibrate(self, number: int) -> int:
        """The wall time from the cache policy to the end of an empty interval between two events."""
        start, stop = self._events[-1]
        began = time.perf_counter_ns()
        self._set_caches(number)
        self._hip.call("hipEventRecord", start, self._stream)
        self._hip.call("hipEventRecord", stop, self._stream)
        self._hip.call("hipEventSynchronize", stop)
        return time.perf_counter_ns() - began

    def _timed(self, number: int) -> tuple[float, int, int]:
        """Milliseconds by the events; nanoseconds by the processor, and of them waiting for a processor."""
        # Nothing waits between the policy's work and the plan: while the GPU does the one, the host queues
        # the other, so that no time of the host's lies between the two events.
        hip, (start, stop) = self._hip, self._events[number]
        waited = waited_ns()
        began = time.perf_counter_ns()
        self._set_caches(number)
        hip.call("hipEventRecord", start, self._stream)
        for step in self._steps:
            step()
        hip.call("hipEventRecord", stop, self._stream)
        hip.call("hipEventSynchronize", stop)
        nanoseconds = time.perf_counter_ns() - began
        waited = waited_ns() - waited
        hip.call("hipGetLastError")
        return hip.elapsed_ms(start, stop), nanoseconds, waited

    def _set_caches(self, number: int) -> None:
        if self._plan["policy"] == "cold":
            value = 0x55 if number % 2 else 0xAA
            self._hip.call("hipMemsetAsync", self._flush, value, self._plan["flush_bytes"], self._stream)
            return
        for region, source, buffer in zip(self._regions, self._staging, self._buffers, strict=True):
            arguments = (buffer, source, region["bytes"], DEVICE_TO_DEVICE, self._stream)
            self._hip.call("hipMemcpyAsync", *arguments)

    def _write(self, offsets: list[int]) -> None:
        targets = self._buffers if self._plan["policy"] == "cold" else self._staging
        for region, offset, buffer in zip(self._regions, offsets, targets, strict=True):
            source = self._host[region["writable"]].at(offset)
            self._hip.call("hipMemcpy", buffer, source, region["bytes"], HOST_TO_DEVICE)

    def _read_back(self, offsets: list[int], scratch: Any) -> list[str]:
        """Outputs go to the judge; the names of inputs that are not what they were, guards included."""
        changed: list[str] = []
        for region, offset, buffer in zip(self._regions, offsets, self._buffers, strict=True):
            home = self._host[region["writable"]].at(offset)
            target = home if region["writable"] else ctypes.addressof(scratch)
            self._hip.call("hipMemcpy", target, buffer, region["bytes"], DEVICE_TO_HOST)
            if not region["writable"] and differs(home, target, region["bytes"]):
                changed.append(region["name"])
        return changed

    def _step(self, step: dict[str, Any]) -> Any:
        """What enqueues one step of the plan, everything that can be made before it having been made."""
        return self._fill(step) if "fill" in step else self._launch(step)

    def _launch(self, step: dict[str, Any]) -> Any:
        segment = bytearray.fromhex(step["segment"])
        for offset, region in step["pointers"]:
            segment[offset : offset + 8] = self._data(region).to_bytes(8, "little")
        arguments = (ctypes.c_char * len(segment)).from_buffer(segment)
        function = self._functions[int(step["kernel"])]

        def launch() -> None:
            self._hip.launch(function, step["grid"], step["block"], step["lds"], self._stream, arguments)

        return launch

    def _fill(self, step: dict[str, Any]) -> Any:
        pattern, nbytes = bytes.fromhex(step["pattern"]), int(step["bytes"])
        target = self._data(step["fill"])
        if len(pattern) == 8 and pattern[:4] == pattern[4:]:
            pattern = pattern[:4]
        if len(pattern) == 8:
            # There is no call that repeats eight bytes: they are repeated once, here, and copied then.
            source = self._allocate(nbytes)
            self._hip.call("hipMemcpy", source, pattern * (nbytes // 8), nbytes, HOST_TO_DEVICE)
            copied = (target, source, nbytes, DEVICE_TO_DEVICE, self._stream)
            return lambda: self._hip.call("hipMemcpyAsync", *copied)
        name = {1: "hipMemsetAsync", 2: "hipMemsetD16Async", 4: "hipMemsetD32Async"}[len(pattern)]
        value = int.from_bytes(pattern, "little", signed=len(pattern) == 4)
        return lambda: self._hip.call(name, target, value, nbytes // len(pattern), self._stream)

    def _data(self, region: int) -> int:
        """The address of a region's first byte, behind its guard."""
        base = self._buffers[region].value
        assert base is not None
        return base + int(self._regions[region]["lead"])
