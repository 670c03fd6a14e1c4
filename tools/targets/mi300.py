"""An AMD GPU of this machine (gfx942, gfx950, gfx90a), through ROCm's runtime and a worker process beside it.

Devices of one kind share the work of several sessions: each evaluation holds one of them, alone, while it
checks and while it times. Candidates are device code only; the process that loads them is ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, final

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, Compiler, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.errors import DeviceLost, SandboxError, UnusableEnvironment
from kernel_scientist.sandbox.execution import BatchOutcome, Crashed, Fill, KernelLaunch, Region
from kernel_scientist.sandbox.files import FileLock, cache_home
from kernel_scientist.sandbox.load import LoadSample
from kernel_scientist.sandbox.rocm import RocmDevice, devices
from kernel_scientist.sandbox.rocm.batch_plan import CachePolicy
from kernel_scientist.sandbox.rocm.confinement import Confinement, confine
from kernel_scientist.sandbox.rocm.discovery import answers, require_runtime
from kernel_scientist.sandbox.rocm.process import DeviceWorker
from kernel_scientist.sandbox.rocm.supply import WorkerSupply
from kernel_scientist.sandbox.rocm.worker import BatchReport, run_batch
from kernel_scientist.sandbox.toolchain import ARCHITECTURES
from kernel_scientist.sandbox.workspace import Workspace

from ..assessor import LocalAssessor
from ..peaks import device_roofline, disagreements, peaks_of
from ..problem import Problem
from ..roofline import Roofline
from ..settings import JudgeSettings
from .gfx942 import Gfx942Reporter

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Mi300Target"]

_LOCK_TIMEOUT_S = 600.0
_LOCK_PAUSE_S = 0.2
# What a driver takes to reset a device; one that does not answer after these waits is lost.
_RETURN_PAUSES_S = (1.0, 5.0, 15.0)
# Filled and checked memory on both sides of every buffer.
_GUARD_BYTES = 16384
# What is written between runs, as a multiple of all caches together: their replacement is not strictly by
# age.
_FLUSH_FACTOR = 2
# Where the table does not know a GPU's caches: more than any so far has.
_LARGEST_CACHES = 320 << 20
_SENSORS = (
    ("clock_mhz", "clock", "MHz"),
    ("memory_clock_mhz", "memory clock", "MHz"),
    ("hotspot_c", "hotspot", "°C"),
)


@final
class Mi300Target:
    """Target and device in one; `caches` is the state in which every run finds them.

    `allow_no_sandbox` compiles candidates without a cage where there is none.

    UnusableEnvironment when this machine has no ROCm, no device of a supported architecture, or no compiler.
    """

    target_class = "mi300"
    reverses = False

    def __init__(self, *, allow_no_sandbox: bool = False, caches: Literal["cold", "warm"] = "cold") -> None:
        self._library = require_runtime()
        self._devices: list[RocmDevice] = _usable(devices(self._library))
        self._kind = self._devices[0]
        # The compiler reads text that nobody trusts, so it needs a cage of any kind, or the user's word.
        self._cage: Cage = select_cage(allow_none=allow_no_sandbox)
        self._reporter = Gfx942Reporter(self._cage)
        self._confinement: Confinement = confine(self._cage, self._library)
        self._compiler: Compiler = open_compiler(self._kind.arch, cage=self._cage)
        self._policy = CachePolicy(caches, _flush_bytes(self._kind))
        self._count = len(self._devices)
        self._supply: WorkerSupply | None = None  # while a device is held
        self._last = self._kind
        self._sensors: list[dict[str, float]] = []
        self.name = "mi300" if caches == "cold" else "mi300-warm"

    @property
    def device(self) -> str:
        kind = self._kind
        units = "" if kind.compute_units is None else f", {kind.compute_units} CUs"
        count = f", one of {self._count}" if self._count > 1 else ""
        return f"{kind.title} ({kind.arch}{units}{count}), ROCm runtime {kind.runtime}"

    @property
    def sandbox(self) -> str:
        return self._confinement.name

    @property
    def caches(self) -> str:
        if self._policy.name == "warm":
            return "warm caches: a run's inputs are copied into place on the device right before it"
        return (
            f"cold caches: {self._policy.flush_bytes >> 20} MiB, more than the caches hold, are written on "
            "the device between a run's inputs and the run"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        device = self._last
        return (*disagreements(device), f"{device.title} at {device.pci}: {_sensed(self._sensors)}")

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> LocalAssessor:
        return LocalAssessor(self, self, problem, settings, seeds)

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        return self._compiler.compile(request)

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        return self._reporter.report(request)

    def workspace(self, regions: Sequence[Region], runs: int) -> Workspace:
        return Workspace(regions, runs, slack_bytes=_GUARD_BYTES)

    def run(
        self,
        code: CodeObject,
        workspace: Workspace,
        launches: Sequence[KernelLaunch | Fill],
        *,
        count: int,
        timeout_s: float,
        reverse_fibers: bool = False,
    ) -> BatchOutcome:
        """Outside of `exclusive` the device is held for this batch. A GPU knows no reverse order.

        DeviceLost when the device is lost for good and others are left; it is not used again.
        """
        assert not reverse_fibers
        supply = self._supply
        if supply is None:
            with self.exclusive():
                return self.run(code, workspace, launches, count=count, timeout_s=timeout_s)
        device = supply.where.device

        def batch() -> BatchReport:
            return run_batch(
                supply.where, code, workspace, launches, count=count, timeout_s=timeout_s, supply=supply
            )

        report = self._started(batch, device)
        self._sensors += report.sensors
        outcome = report.outcome
        if isinstance(outcome, Crashed) and outcome.device_lost and not self._returns(device):
            raise self._without(device, outcome.reason.rstrip("."), under_kernel=True)
        return outcome

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Hold the first device that is free, if possible the one that was held last."""
        device, lock = self._acquire()
        try:
            with WorkerSupply(DeviceWorker(self._library, device, self._confinement, self._policy)) as supply:
                self._supply, self._last = supply, device
                self._sensors.clear()
                yield
        finally:
            self._supply = None
            lock.__exit__(None, None, None)

    def load(self) -> LoadSample | None:
        """The host's load says nothing of the device's."""

    def roofline(self, *, again: bool = False) -> Roofline | None:
        """From the data sheet, so that `again` changes nothing."""
        del again
        return device_roofline(self._last)

    def _started(self, batch: Callable[[], BatchReport], device: RocmDevice) -> BatchReport:
        """The batch's report, once the device takes it: one that is being reset gets its time."""
        for pause in _RETURN_PAUSES_S:
            try:
                return batch()
            except DeviceLost:
                time.sleep(pause)
        try:
            return batch()
        except DeviceLost as error:
            raise self._without(device, error.said) from None

    def _returns(self, device: RocmDevice) -> bool:
        for pause in _RETURN_PAUSES_S:
            if answers(self._library, device):
                return True
            time.sleep(pause)
        return answers(self._library, device)

    def _without(self, device: RocmDevice, said: str, *, under_kernel: bool = False) -> UnusableEnvironment:
        """What is to be raised when `device` is lost; it is not used any more."""
        self._devices.remove(device)
        left = len(self._devices)
        if not left:
            others = f"No device is left of {self._count} for mi300: " if self._count > 1 else ""
            return UnusableEnvironment(
                f"{others}{device.title} cannot be used: {said}; see rocminfo and dmesg."
            )
        message = (
            f"{device.title} at {device.pci} is lost ({said}); "
            f"{left} of {self._count} devices {'is' if left == 1 else 'are'} left"
        )
        return DeviceLost(message, said, under_kernel=under_kernel)

    def _acquire(self) -> tuple[RocmDevice, FileLock]:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        wanted = sorted(self._devices, key=lambda one: one is not self._last)
        while True:
            for device in wanted:
                path = cache_home() / f"device-{device.pci}-{device.token}.lock"
                lock = FileLock(path, timeout_s=0.0, purpose=f"using {device.title}")
                try:
                    return device, lock.__enter__()
                except SandboxError:
                    if time.monotonic() >= deadline:
                        raise
            time.sleep(_LOCK_PAUSE_S)


def _usable(found: Sequence[RocmDevice]) -> list[RocmDevice]:
    """The devices of the first one's kind, that one being of a supported architecture."""
    supported = [device for device in found if device.arch in ARCHITECTURES]
    if not supported:
        seen = ", ".join(sorted({device.arch or "unknown" for device in found}))
        has = f"its devices are {seen}" if found else "it finds none; see rocminfo, and who may open /dev/kfd"
        wanted = ", ".join(one for one in ARCHITECTURES if one != "cpu")
        raise UnusableEnvironment(
            f"No device for mi300 here: ROCm is installed, and {has}; {wanted} will do."
        )
    kind = supported[0]
    return [one for one in supported if (one.arch, one.compute_units) == (kind.arch, kind.compute_units)]


def _flush_bytes(device: RocmDevice) -> int:
    known = peaks_of(device)
    if known is None or device.l2_bytes is None:
        return _FLUSH_FACTOR * _LARGEST_CACHES
    _, peaks = known
    return _FLUSH_FACTOR * (device.l2_bytes * (device.xcds or peaks.xcds) + peaks.infinity_cache_bytes)


def _sensed(samples: Sequence[dict[str, float]]) -> str:
    """What clock and temperature were, between the least and the largest sample."""
    parts: list[str] = []
    for key, name, unit in _SENSORS:
        values = [sample[key] for sample in samples if key in sample]
        if values:
            low, high = f"{min(values):.0f}", f"{max(values):.0f}"
            parts.append(f"{name} {low if low == high else f'{low} to {high}'} {unit}")
    return ", ".join(parts) + " round the batches" if parts else "clock and temperature were not measured"
