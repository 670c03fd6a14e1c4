"""What a failed call of the HIP runtime, or the death of its process, says of the candidate.

Before "go" nothing of the candidate has run: only what the runtime says of its code object, and of the memory
it asks for, is its fault. From "go" on a launch that is refused is the candidate's, and so is a fault, a
device that is lost under it, and the end of the process.
"""

from __future__ import annotations

import signal
from typing import Any, Protocol

from ..errors import DeviceLost, SandboxError
from ..execution import BatchOutcome, Crashed, NotLaunched, TimedOut
from .discovery import RocmDevice

__all__ = ["after_go", "before_go", "death"]

# hipErrorNoDevice, hipErrorInvalidDevice, hipErrorDeinitialized, hipErrorInvalidContext
_LOST = (100, 101, 4, 201)
# hipErrorECCNotCorrectable, hipErrorIllegalAddress, hipErrorAssert, hipErrorLaunchFailure: an earlier
# kernel's.
_FAULTS = (214, 700, 710, 719)
_LAUNCH_TIMEOUT = 702


class _End(Protocol):
    @property
    def status(self) -> int | None: ...

    @property
    def said(self) -> str: ...


def before_go(answer: dict[str, Any] | None, end: _End, device: RocmDevice) -> BatchOutcome:
    """What the candidate is told; `DeviceLost` or `SandboxError` when the fault is the machine's."""
    if answer is None:
        raise SandboxError(
            f"The device worker {_how(end)} before it was ready; run `kernel-scientist doctor` and rocminfo."
        )
    if not answer:
        raise SandboxError(
            f"The ROCm runtime did not start on {device.title} in time; see rocminfo and dmesg."
        )
    failed = answer["failed"]
    if failed["phase"] in ("load", "allocate") and failed["code"] not in _LOST:
        what = (
            "did not accept the code object" if failed["phase"] == "load" else "has no room for the buffers"
        )
        return NotLaunched(f"The device {what}: {_call(failed)}.")
    said = _call(failed) if "call" in failed else failed["text"]
    raise DeviceLost(f"{device.title} cannot be used: {said}; see rocminfo and dmesg.", said)


def after_go(failed: dict[str, Any], timeout_s: float) -> BatchOutcome:
    """The outcome of a batch in which a call has failed."""
    where = f"in run {failed['run']}" if failed["phase"] == "run" else "after the last run"
    if failed["code"] == _LAUNCH_TIMEOUT:
        return TimedOut(timeout_s)
    if failed["code"] in _LOST:
        return Crashed(f"The device was lost {where}: {_call(failed)}.", device_lost=True)
    if failed["call"] == "hipModuleLaunchKernel" and failed["code"] not in _FAULTS:
        return NotLaunched(f"The launch was refused {where}: {_call(failed)}.")
    return Crashed(f"The device reported a fault {where}: {_call(failed)}.")


def death(end: _End) -> Crashed:
    """The outcome of a batch whose worker ended without a word; the runtime writes its reason to stderr."""
    return Crashed(f"The worker {_how(end)} while the kernel ran.")


def _call(failed: dict[str, Any]) -> str:
    return f"{failed['call']} says {failed['name']} ({failed['code']}), {failed['text']}"


def _how(end: _End) -> str:
    said = f" ({end.said})" if end.said else ""
    if end.status is None:
        return f"had to be killed{said}"
    if end.status < 0:
        return f"was ended by {signal.Signals(-end.status).name}{said}"
    return f"ended with status {end.status}{said}"
