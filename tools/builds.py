"""From a kernel and shapes to code objects: one build per distinct value of the plan's constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import assert_never

from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, CompileRequest
from kernel_scientist.sandbox.resources import KernelResources

from .binding import MAX_LDS_BYTES, BoundPlan, bind
from .errors import PlanError
from .evaluation import Verdict
from .kernel import Kernel
from .policy import policy_violation
from .problem import Problem
from .targets.base import Device

__all__ = ["Build", "BuildFailure", "Builds", "build"]

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
class Builds:
    """A kernel's builds in the order of the shapes asked for, and what the gfx942 compiler reports."""

    builds: tuple[Build, ...]
    resources: tuple[KernelResources, ...]
    resources_note: str
    log: str
    cached: bool


def build(
    kernel: Kernel, problem: Problem, shapes: Sequence[Shape], report_shapes: Sequence[Shape], device: Device
) -> Builds | BuildFailure:
    """Check the text, bind the plan to every shape, compile for the device and, beside it, for gfx942.

    The gfx942 report is of `report_shapes`; where they need several builds, of the first one.
    """
    violation = policy_violation(kernel.source)
    if violation is not None:
        return BuildFailure(Verdict.REJECTED, violation)
    try:
        plans = [bind(kernel, problem, shape) for shape in shapes]
        reported = [bind(kernel, problem, shape) for shape in report_shapes]
    except PlanError as error:
        return BuildFailure(Verdict.INVALID_PLAN, str(error))
    requests = [_request(kernel, plan) for plan in plans]
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="compile") as pool:
        # The slowest first: everything for gfx942 goes through one compile.
        report = [
            pool.submit(device.report, item) for item in dict.fromkeys(_request(kernel, p) for p in reported)
        ]
        codes = {request: pool.submit(device.compile, request) for request in dict.fromkeys(requests)}
        return _gather(plans, requests, codes, report)


def _request(kernel: Kernel, plan: BoundPlan) -> CompileRequest:
    return CompileRequest(kernel.source, plan.entries, plan.constants)


def _gather(
    plans: Sequence[BoundPlan],
    requests: Sequence[CompileRequest],
    codes: Mapping[CompileRequest, Future[CodeObject | CompileFailure]],
    reports: Sequence[Future[CodeObject | CompileFailure | str]],
) -> Builds | BuildFailure:
    builds: list[Build] = []
    for plan, request in zip(plans, requests, strict=True):
        code = codes[request].result()
        if isinstance(code, CompileFailure):
            _cancel([*codes.values(), *reports])
            return _failure(code)
        over = _lds_over_limit(plan, code)
        if over is not None:
            _cancel([*codes.values(), *reports])
            return BuildFailure(Verdict.LAUNCH_ERROR, over, code.log)
        builds.append(Build(plan, code))
    first: CodeObject | str = "no shape to report on"
    for index, future in enumerate(reports):
        report = future.result()
        if isinstance(report, CompileFailure):
            _cancel(reports)
            return _failure(report)
        if index == 0:
            first = report
    resources, note, log = _resources(first)
    logs = [builds[0].code.log if builds else "", log]
    return Builds(
        tuple(builds),
        resources,
        note,
        "\n".join(text for text in logs if text),
        all(b.code.cached for b in builds),
    )


def _cancel(
    futures: Sequence[Future[CodeObject | CompileFailure] | Future[CodeObject | CompileFailure | str]],
) -> None:
    for future in futures:
        future.cancel()


def _resources(report: CodeObject | str) -> tuple[tuple[KernelResources, ...], str, str]:
    if isinstance(report, str):
        return (), report, ""
    resources = tuple(kernel.resources for kernel in report.kernels if kernel.resources is not None)
    return resources, f"compiled for {report.arch} by {report.compiler}", report.log


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


def _lds_over_limit(plan: BoundPlan, code: CodeObject) -> str | None:
    """Static and dynamic LDS together are limited, which neither the plan nor the compiler sees alone."""
    for launch in plan.launches:
        kernel = code.kernels[launch.kernel]
        total = kernel.static_lds_bytes + launch.lds_bytes
        if total > MAX_LDS_BYTES:
            return (
                f"kernel '{kernel.entry.kernel}' needs {total} bytes of LDS a block ("
                f"{kernel.static_lds_bytes} in __shared__ variables, {launch.lds_bytes} by the plan's lds), "
                f"over the limit of {MAX_LDS_BYTES}"
            )
    return None
