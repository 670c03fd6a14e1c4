"""The two seams under the judge: a target that evaluates kernels, and a device that runs them here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, CompileRequest
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, KernelLaunch, Region
from kernel_scientist.sandbox.load import LoadSample
from kernel_scientist.sandbox.workspace import Workspace

from ..evaluation import Comparison, Evaluation
from ..kernel import Kernel
from ..problem import Problem
from ..roofline import Roofline
from ..settings import JudgeSettings, Tier

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Assessor", "Device", "Target"]


class Assessor(Protocol):
    """Evaluates kernels on one problem; only one call runs at a time.

    A failing kernel is an `Evaluation`; exceptions are for a broken problem or a broken machine.
    `baseline` is ``None`` when the kernel is itself what others will be measured against. `prepare` may be
    called at any time, also while another call runs.
    """

    def prepare(self, kernel: Kernel) -> None:
        """Begin in the background what evaluating `kernel` will need, and return at once."""
        ...

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        """The verdict on a kernel that its text alone speaks against; nothing is compiled or run."""
        ...

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation: ...

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        """B measured against A in pairs that had no part in choosing either; both known to be accepted."""
        ...


class Target(Protocol):
    """Where kernels are evaluated. `target_class` selects the problem's shapes: ``cpu`` or ``mi300``.

    `device` describes the hardware in a few words, `sandbox` names the cage that holds candidates.
    """

    @property
    def name(self) -> str: ...

    @property
    def target_class(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def sandbox(self) -> str: ...

    def assessor(self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence) -> Assessor:
        """An assessor for `problem`; inputs are drawn from `seeds`, anew for every evaluation."""
        ...


class Device(Protocol):
    """A device of this machine that the judge drives batch by batch, through a caged worker."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know about the device, a sentence each."""
        ...

    @property
    def caches(self) -> str:
        """In what state a run finds the caches, and how it comes about."""
        ...

    @property
    def reverses(self) -> bool:
        """Whether `run` can have blocks and threads in reverse order."""
        ...

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        """Build for this device."""
        ...

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        """Build for gfx942, to learn its resources; a sentence when there is no compiler for it here."""
        ...

    def workspace(self, regions: Sequence[Region], runs: int) -> Workspace:
        """Memory for `runs` runs, shared with the workers of this device."""
        ...

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
        """Runs 0 to `count` - 1 in a fresh worker, which is dead when this returns."""
        ...

    def exclusive(self) -> AbstractContextManager[object]:
        """Holds the device for timing, against every other process of ours on this machine."""
        ...

    def load(self) -> LoadSample | None:
        """What the machine does now beside timing, or ``None`` where that is not known."""
        ...

    def roofline(self, *, again: bool = False) -> Roofline | None:
        """The device's speed of light, measured once a machine; `again` measures anew."""
        ...
