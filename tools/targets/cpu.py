"""The host CPU as a device: HIP source compiled for it and run in caged workers, each pinned to a core.

Timing uses one core, unless all are asked for. Then every core has a worker that does its share of the
runs at the same time, and the batch takes as long as the slowest of them: a throughput, in which cores
compete for memory and the judge competes with the kernels, so that it spreads more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, Compiler, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.cores import off_core, reserved_core
from kernel_scientist.sandbox.device import CpuDevice, cpu_device
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, Finished, KernelLaunch, Region
from kernel_scientist.sandbox.files import FileLock, cache_home
from kernel_scientist.sandbox.load import LoadSample, sample_load
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

from ..assessor import LocalAssessor
from ..problem import Problem
from ..roofline import Roofline
from ..settings import JudgeSettings
from .calibration import cached_roofline
from .gfx942 import Gfx942Reporter

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CpuTarget"]

# Long enough for the confirm tier of another process on every shape of a problem.
_LOCK_TIMEOUT_S = 600.0


@final
class CpuTarget:
    """Target and device in one. `allow_no_sandbox` runs candidates without a cage where there is none;
    `all_cores` times runs on all cores at once.

    SandboxError or UnusableEnvironment when this machine has no cage or no compiler.
    """

    target_class = "cpu"
    caches = "cold caches: every run has inputs and outputs of its own"
    reverses = True

    def __init__(self, *, allow_no_sandbox: bool = False, all_cores: bool = False) -> None:
        self._cage: Cage = select_cage(allow_none=allow_no_sandbox)
        self._reporter = Gfx942Reporter(self._cage)
        self._cpu: CpuDevice = cpu_device()
        self._compiler: Compiler = open_compiler("cpu", cage=self._cage)
        self._roofline: Roofline | None = None
        self._cores = self._cpu.usable if all_cores else (self._cpu.timing_core,)
        self.name = "cpu-all-cores" if all_cores else "cpu"

    @property
    def device(self) -> str:
        count = len(self._cores)
        return f"{self._cpu.model}, {'one core' if count == 1 else f'{count} cores at once'}"

    @property
    def notes(self) -> tuple[str, ...]:
        plain = "this CPU and say nothing of how fast a kernel is on a GPU"
        if len(self._cores) == 1:
            return (f"times are of one core of {plain}",)
        return (
            f"times are of {len(self._cores)} cores of {plain}",
            f"{len(self._cores)} cores share the runs: a time is the reciprocal of a throughput, and spreads "
            "more than one core's does",
        )

    @property
    def sandbox(self) -> str:
        return f"{self._cage.name} {self._cage.version}".strip()

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> LocalAssessor:
        return LocalAssessor(self, self, problem, settings, seeds)

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        # A compiler inherits where its caller may run: another kernel may be timed at this moment.
        with off_core(self._cpu.timing_core):
            return self._compiler.compile(request)

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        with off_core(self._cpu.timing_core):
            return self._reporter.report(request)

    def workspace(self, regions: Sequence[Region], runs: int) -> Workspace:
        return Workspace(regions, runs)

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
        if reverse_fibers:
            # A plain loop over threads knows one order only; as fibers they can be run in the other.
            code = replace(code, kernels=tuple(replace(one, needs_fibers=True) for one in code.kernels))

        def share(first: int, end: int, core: int, when_ready: Callable[[], object]) -> BatchOutcome:
            return run_batch(
                code,
                workspace,
                launches,
                first=first,
                count=end - first,
                timeout_s=timeout_s,
                cage=self._cage,
                core=core,
                reverse_fibers=reverse_fibers,
                when_ready=when_ready,
            )

        return _at_once(share, count, self._cores[-count:])

    @contextmanager
    def exclusive(self) -> Generator[None]:
        with ExitStack() as held:
            for core in self._cores:
                path = cache_home() / f"timing-core-{core}.lock"
                held.enter_context(FileLock(path, timeout_s=_LOCK_TIMEOUT_S, purpose="timing kernels"))
            held.enter_context(reserved_core(self._cpu.timing_core))
            yield

    def load(self) -> LoadSample | None:
        return sample_load({self._cpu.timing_core, self._cpu.judge_core})

    def roofline(self, *, again: bool = False) -> Roofline:
        if again or self._roofline is None:
            one_core = cached_roofline(self, f"{self._cpu} {self._compiler.name}", again=again)
            self._roofline = one_core.times(len(self._cores))
        return self._roofline


_Share = Callable[[int, int, int, Callable[[], object]], BatchOutcome]


def _at_once(share: _Share, count: int, cores: Sequence[int]) -> BatchOutcome:
    """Have each core do its share of the runs from a common start: its first run, the end, the core, and
    what to call when ready."""
    if len(cores) == 1:
        return share(0, count, cores[0], lambda: None)
    start = threading.Barrier(len(cores))
    bounds = [count * i // len(cores) for i in range(len(cores) + 1)]

    def one_share(first: int, end: int, core: int) -> BatchOutcome:
        try:
            return share(first, end, core, start.wait)
        except BaseException:
            start.abort()
            raise

    with ThreadPoolExecutor(len(cores), thread_name_prefix="core") as pool:
        shares = [pool.submit(one_share, *each) for each in zip(bounds, bounds[1:], cores, strict=False)]
    errors = [error for one in shares if (error := one.exception()) is not None]
    # Who waited for one that failed has an error of its own, which says nothing.
    for error in sorted(errors, key=lambda one: isinstance(one, threading.BrokenBarrierError)):
        raise error
    return _together([one.result() for one in shares])


def _together(outcomes: Sequence[BatchOutcome]) -> BatchOutcome:
    """The batch that several workers did at once: the first failure, else as long as the slowest took."""
    done: list[Finished] = []
    for outcome in outcomes:
        if not isinstance(outcome, Finished):
            return outcome
        done.append(outcome)
    own = [one.processor_s for one in done if one.processor_s is not None]
    return Finished(max(one.seconds for one in done), max(own) if len(own) == len(done) else None)
