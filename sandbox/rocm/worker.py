"""Run a batch on a GPU in a fresh worker process, which is gone with its process group before this returns.

Covered: every batch has a new process, so a new context and fresh device globals; inputs are rewritten,
outputs and guards poisoned before each run, by the worker and from the judge's copies; a hung, faulting or
lost device ends the worker and leaves nothing of it. The worker's program is ours: its times and its word on
changed inputs are believed as far as the caller's clock allows. Not covered: what device code can do to the
memory that the runtime shares with the device, beyond the check of times; see clocks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..compilation import CodeObject
from ..execution import BatchOutcome, Crashed, Fill, Finished, Implausible, KernelLaunch, Tampered, TimedOut
from ..workspace import Workspace
from .batch_plan import CachePolicy, write_plan
from .clocks import Times, contradiction
from .failures import after_go, before_go, death
from .process import READY_TIMEOUT_S, DeviceWorker, WorkerEnd, WorkerProcess
from .supply import WorkerSupply

__all__ = ["BatchReport", "run_batch"]

# What a run may take beside its kernels before the worker counts as hung: copies to and from the device at a
# rate that any link has, the writing of the flush buffer, and calls.
_LINK_BYTES_PER_S = 1e9
_FLUSH_BYTES_PER_S = 50e9
_CALLS_S = 0.02


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What came of a batch, and the device's clock and temperatures before and after it."""

    outcome: BatchOutcome
    sensors: tuple[dict[str, float], ...] = ()


def run_batch(
    where: DeviceWorker,
    code: CodeObject,
    workspace: Workspace,
    launches: Sequence[KernelLaunch | Fill],
    *,
    count: int,
    timeout_s: float,
    supply: WorkerSupply | None = None,
) -> BatchReport:
    """Run `launches` in order on each of the first `count` runs' own regions, in one new process.

    The process comes from `supply` where there is one, which may have started it ahead.

    `timeout_s` is for the kernels; what putting their buffers into place may take is added. Raises
    `DeviceLost` when the device fails before the candidate has any part in it.
    """
    if not 0 < count <= workspace.runs:
        raise ValueError(f"{count} runs are not in a workspace of {workspace.runs}")
    plan = write_plan(
        code,
        code.path.stat().st_size,
        workspace,
        launches,
        count=count,
        policy=where.policy,
        pci=where.device.pci,
    )
    limit_s = timeout_s + count * _beside_s(workspace, where.policy)
    finished = False
    try:
        with WorkerProcess(where) if supply is None else supply.take() as process:
            report = _drive(process, plan, code, workspace, where, limit_s, timeout_s, len(launches))
        finished = isinstance(report.outcome, Finished)
        return report
    finally:
        if supply is not None and not finished:
            supply.drop()


def _drive(
    process: WorkerProcess,
    plan: bytes,
    code: CodeObject,
    workspace: Workspace,
    where: DeviceWorker,
    limit_s: float,
    timeout_s: float,
    steps: int,
) -> BatchReport:
    """The batch from the worker's start to its end, by what it answers."""
    ready = process.started()
    if ready == {"started": True}:
        process.assign(plan, code, workspace)
        ready = process.receive(READY_TIMEOUT_S)
    if ready is None or "ready" not in ready:
        return BatchReport(before_go(ready, process.end(patient=bool(ready)), where.device))
    seconds, answer = process.go(limit_s)
    if answer == {}:
        return BatchReport(TimedOut(timeout_s))
    end = process.end(patient=answer is not None and "done" in answer)
    if answer is None:
        return BatchReport(death(end))
    if "done" not in answer:
        return BatchReport(after_go(answer["failed"], timeout_s))
    return _conclude(ready["ready"], answer["done"], seconds, steps, end)


def _conclude(
    ready: dict[str, Any], done: dict[str, Any], seconds: float, steps: int, end: WorkerEnd
) -> BatchReport:
    sensors = tuple(done["sensors"])
    if end.status != 0:
        how = "did not end" if end.status is None else f"ended with status {end.status}"
        return BatchReport(Crashed(f"The worker {how} after its last run{_quoted(end.said)}."), sensors)
    if done["changed"]:
        names = ", ".join(f"'{name}' in run {run}" for name, run in done["changed"].items())
        return BatchReport(Tampered(f"the kernel wrote to an input, or right beside it: {names}"), sensors)
    times = Times(
        tuple(done["event_ms"]),
        _milliseconds(done["wall_ns"]),
        _milliseconds(done["waited_ns"]),
        _milliseconds(ready["empty_ns"]),
    )
    fault = contradiction(times, steps=steps, caller_s=seconds)
    if fault is not None:
        return BatchReport(Implausible(fault), sensors)
    return BatchReport(Finished(seconds, device_s=times.device_s), sensors)


def _milliseconds(nanoseconds: Sequence[int]) -> tuple[float, ...]:
    return tuple(one / 1e6 for one in nanoseconds)


def _quoted(said: str) -> str:
    return f" ({said})" if said else ""


def _beside_s(workspace: Workspace, policy: CachePolicy) -> float:
    moved = 3 * workspace.nbytes / workspace.runs
    return moved / _LINK_BYTES_PER_S + policy.flush_bytes / _FLUSH_BYTES_PER_S + _CALLS_S
