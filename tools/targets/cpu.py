"""The host CPU as a device: HIP source compiled for it and run in a caged worker on one pinned core."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, Compiler, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.device import CpuDevice, cpu_device
from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, KernelLaunch, Region
from kernel_scientist.sandbox.files import FileLock, cache_home
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

from ..assessor import LocalAssessor
from ..problem import Problem
from ..roofline import Roofline
from ..settings import JudgeSettings
from .calibration import cached_roofline

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CpuTarget"]

# Long enough for the confirm tier of another process on every shape of a problem.
_LOCK_TIMEOUT_S = 600.0
_REPORT_ARCH = "gfx942"


@final
class CpuTarget:
    """Target and device in one. `allow_no_sandbox` runs candidates without a cage where there is none.

    SandboxError or UnusableEnvironment when this machine has no cage or no compiler.
    """

    name = "cpu"
    target_class = "cpu"
    notes = ("times are of one core of this CPU and say nothing of how fast a kernel is on a GPU",)

    def __init__(self, *, allow_no_sandbox: bool = False) -> None:
        self._cage: Cage = select_cage(allow_none=allow_no_sandbox)
        self._cpu: CpuDevice = cpu_device()
        self._compiler: Compiler = open_compiler("cpu", cage=self._cage)
        self._roofline: Roofline | None = None

    @property
    def device(self) -> str:
        return f"{self._cpu.model}, one core"

    @property
    def sandbox(self) -> str:
        return f"{self._cage.name} {self._cage.version}".strip()

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> LocalAssessor:
        return LocalAssessor(self, self, problem, settings, seeds)

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        return self._compiler.compile(request)

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        compiler = self._reporter
        return compiler if isinstance(compiler, str) else compiler.compile(request)

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
        return run_batch(
            code,
            workspace,
            launches,
            count=count,
            timeout_s=timeout_s,
            cage=self._cage,
            core=self._cpu.timing_core,
            reverse_fibers=reverse_fibers,
        )

    def exclusive(self) -> AbstractContextManager[object]:
        path = cache_home() / f"timing-core-{self._cpu.timing_core}.lock"
        return FileLock(path, timeout_s=_LOCK_TIMEOUT_S, purpose="timing kernels")

    def roofline(self, *, again: bool = False) -> Roofline:
        if again or self._roofline is None:
            self._roofline = cached_roofline(self, f"{self._cpu} {self._compiler.name}", again=again)
        return self._roofline

    @cached_property
    def _reporter(self) -> Compiler | str:
        try:
            return open_compiler(_REPORT_ARCH, cage=self._cage)
        except UnusableEnvironment as error:
            return f"no {_REPORT_ARCH} report: {error}"
