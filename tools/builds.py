"""From a kernel and shapes to code objects: one build per distinct value of the plan's constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import assert_never, final

from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, CompileRequest
from kernel_scientist.sandbox.resources import KernelResources

from .binding import MAX_LDS_BYTES, BoundPlan, bind
from .compile_queue import CompileQueue
from .errors import PlanError
from .evaluation import Verdict
from .kernel import Kernel
from .policy import policy_violation
from .problem import Problem
from .targets.base import Device

__all__ = ["NOTHING", "Build", "BuildFailure", "Building", "Report", "bind_all", "start_builds"]

Shape = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Build:
    """A code object and the plan, bound to one shape, that launches it."""

    plan: BoundPlan
    code: CodeObject

    @property
    def needs_fibers(self) -> bool:
        return any(kernel.needs_fibers for kernel in self.code.kernels)


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """Why there is nothing to run; `log` is the compiler's output, if it got so far."""

    verdict: Verdict
    message: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What the gfx942 compiler makes of a kernel; `note` says who reports, or why nobody does."""

    resources: tuple[KernelResources, ...]
    note: str
    log: str = ""


# All builds of a candidate together: a plan with a constant per shape must not take the compiler for long.
_BUILDS_S = 120.0

NOTHING = Report((), "")
_NOT_AWAITED = Report((), "the verdict did not wait for the gfx942 compiler")


@final
class Building:
    """A kernel's builds, under way: for the device in the order of the shapes, and beside them for gfx942."""

    def __init__(
        self,
        plans: Sequence[BoundPlan],
        codes: Sequence[Future[CodeObject | CompileFailure]],
        reports: Sequence[Future[CodeObject | CompileFailure | str]],
        release: Callable[[], None],
        hurry: Callable[[], None],
    ) -> None:
        self._plans = plans
        self._codes = codes
        self._reports = reports
        self._release = release
        self._hurry = hurry

    def builds(self) -> tuple[Build, ...] | BuildFailure:
        """Wait for the device's compiler, not for the other one."""
        builds: list[Build] = []
        spent: dict[str, float] = {}
        for plan, future in zip(self._plans, self._codes, strict=True):
            code = future.result()
            failure: BuildFailure | None
            if isinstance(code, CompileFailure):
                failure = _failure(code)
            else:
                spent[code.key] = code.seconds
                failure = _over_lds_limit(plan, code) or _over_time_limit(spent, code)
            if failure is not None:
                self.cancel()
                return failure
            assert isinstance(code, CodeObject)
            builds.append(Build(plan, code))
        return tuple(builds)

    def report(self) -> Report | BuildFailure:
        """Wait for the gfx942 compiler: what does not compile there is no kernel; of the first build."""
        self._hurry()
        reports: list[CodeObject | str] = []
        for future in self._reports:
            report = future.result()
            if isinstance(report, CompileFailure):
                self.cancel()
                return _failure(report)
            reports.append(report)
        return _report(reports[0]) if reports else Report((), "no shape to report on")

    def report_so_far(self) -> Report:
        """The report if it is there already; no more of it is compiled."""
        done = bool(self._reports) and all(one.done() for one in self._reports)
        self.cancel()
        report = self.report() if done else _NOT_AWAITED
        return report if isinstance(report, Report) else _NOT_AWAITED

    def cancel(self) -> None:
        """Begin no further compile, and stop those that run, unless somebody else waits for them."""
        release, self._release = self._release, _nothing
        release()


def bind_all(
    kernel: Kernel, problem: Problem, shapes: Sequence[Shape], scratch_bytes: int | None
) -> tuple[BoundPlan, ...] | BuildFailure:
    """The plan for each shape, once the text is allowed; what is wrong is found without a compiler.

    A run's scratch may take `scratch_bytes`: what the judge can hold of it.
    """
    violation = policy_violation(kernel.source)
    if violation is not None:
        return BuildFailure(Verdict.REJECTED, violation)
    try:
        plans = tuple(bind(kernel, problem, shape) for shape in shapes)
        if scratch_bytes is not None:
            for plan, shape in zip(plans, shapes, strict=True):
                _check_scratch(kernel, plan, shape, scratch_bytes)
    except PlanError as error:
        return BuildFailure(Verdict.INVALID_PLAN, str(error))
    return plans


def _check_scratch(kernel: Kernel, plan: BoundPlan, shape: Shape, most: int) -> None:
    total = sum(buffer.nbytes for buffer in plan.scratch)
    if total <= most:
        return
    largest = max(range(len(plan.scratch)), key=lambda index: plan.scratch[index].nbytes)
    written = kernel.plan.scratch[largest]
    where = ", ".join(f"{name} = {extent}" for name, extent in shape.items())
    raise PlanError(
        f"scratch takes {total} bytes a run for {where}, most of them '{written.name}'; this target holds "
        f"{most}: use less",
        line=written.key_lines.get("size", written.line),
        path=kernel.path,
    )


def start_builds(
    kernel: Kernel,
    problem: Problem,
    shapes: Sequence[Shape],
    report_shapes: Sequence[Shape],
    device: Device,
    queue: CompileQueue,
    *,
    urgent: bool = True,
    scratch_bytes: int | None = None,
) -> Building | BuildFailure:
    """Check the text, bind the plan to every shape, and have the rest done in the background.

    The device's builds come first: a wrong kernel is found out while the gfx942 compiler still works.
    """
    plans = bind_all(kernel, problem, shapes, scratch_bytes)
    reported = bind_all(kernel, problem, report_shapes, None)
    if isinstance(plans, BuildFailure):
        return plans
    if isinstance(reported, BuildFailure):
        return reported
    requests = [_request(kernel, plan) for plan in plans]
    codes = {
        item: queue.submit(("build", item), partial(device.compile, item), urgent=urgent, ahead=not urgent)
        for item in dict.fromkeys(requests)
    }
    reports = {
        item: queue.submit(("report", item), partial(device.report, item), ahead=not urgent)
        for item in dict.fromkeys(_request(kernel, plan) for plan in reported)
    }

    def hurry() -> None:
        for item, report in reports.items():
            queue.hurry(("report", item), report)

    def release() -> None:
        for item, build in codes.items():
            queue.release(("build", item), build)
        for item, report in reports.items():
            queue.release(("report", item), report)

    ordered = [codes[request] for request in requests]
    return Building(plans, ordered, tuple(reports.values()), release if urgent else _nothing, hurry)


def _nothing() -> None:
    """What there is to release where nobody waits."""


def _request(kernel: Kernel, plan: BoundPlan) -> CompileRequest:
    return CompileRequest(kernel.source, plan.entries, plan.constants)


def _report(report: CodeObject | str) -> Report:
    if isinstance(report, str):
        return Report((), report)
    resources = tuple(kernel.resources for kernel in report.kernels if kernel.resources is not None)
    return Report(resources, f"compiled for {report.arch} by {report.compiler}", report.log)


def _failure(failure: CompileFailure) -> BuildFailure:
    where = "" if failure.arch == "cpu" else f"does not compile for {failure.arch}: "
    message = f"{where}{failure.message}"
    match failure.stage:
        case "plan":
            return BuildFailure(Verdict.INVALID_PLAN, message, failure.log)
        case "source" | "limits":
            return BuildFailure(Verdict.COMPILE_ERROR, message, failure.log)
        case _:
            assert_never(failure.stage)


def _over_time_limit(spent: Mapping[str, float], code: CodeObject) -> BuildFailure | None:
    """One build per value of the constants is bounded by the compiler's own limit; so is their sum."""
    if sum(spent.values()) <= _BUILDS_S:
        return None
    message = (
        f"the plan's constants ask for so many builds that {len(spent)} of them took over {_BUILDS_S:g} s "
        "to compile: let the constants take fewer values over the shapes, or make the source cheaper"
    )
    return BuildFailure(Verdict.COMPILE_ERROR, message, code.log)


def _over_lds_limit(plan: BoundPlan, code: CodeObject) -> BuildFailure | None:
    """Static and dynamic LDS together are limited, which neither the plan nor the compiler sees alone."""
    for launch in plan.launches:
        kernel = code.kernels[launch.kernel]
        total = kernel.static_lds_bytes + launch.lds_bytes
        if total > MAX_LDS_BYTES:
            message = (
                f"kernel '{kernel.entry.kernel}' needs {total} bytes of LDS a block ("
                f"{kernel.static_lds_bytes} in __shared__ variables, {launch.lds_bytes} by the plan's lds), "
                f"over the limit of {MAX_LDS_BYTES}"
            )
            return BuildFailure(Verdict.LAUNCH_ERROR, message, code.log)
    return None
