"""Records search spaces on the CPU device for the search benchmark: every configuration once, resumably.

The judge checks and times each, cheaper than its screen tier: one shape, three batches, no drawn shapes, no
build for gfx942. Written as a Kernel Tuner cache file, a row at a time, so that a killed recording goes on.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, CompileRequest
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, KernelLaunch, Region
from kernel_scientist.sandbox.load import LoadSample
from kernel_scientist.sandbox.workspace import Workspace
from kernel_scientist.tools.assessor import LocalAssessor
from kernel_scientist.tools.evaluation import Evaluation, Verdict
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.plan import ConstantValue
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.problem_parts import Shapes
from kernel_scientist.tools.roofline import Roofline
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets.cpu import CpuTarget

__all__ = ["SPACES", "Space", "record"]

Values = tuple[ConstantValue, ...]

SETTINGS = JudgeSettings(
    screen=TierSettings(pairs=3, least_pairs=3, budget_s=1.0, checked_runs=1, most_pairs=3, warm_up=1),
    batch_s=0.004,
    held_out_shapes=0,
    plausible_share=0.0,
)
# Kernel Tuner's names for what failed.
FAILED = {
    Verdict.INVALID_PLAN: "InvalidConfig",
    Verdict.COMPILE_ERROR: "CompilationFailedConfig",
}


@dataclass(frozen=True, slots=True)
class Space:
    """A bundled problem's kernel with some tunables' lists shortened."""

    problem: str
    kernel: str
    narrowed: Mapping[str, tuple[ConstantValue, ...]]

    @property
    def name(self) -> str:
        return f"{self.problem}_{self.kernel}_cpu"

    def lists(self, kernel: Kernel) -> dict[str, tuple[ConstantValue, ...]]:
        return {name: self.narrowed.get(name, tuple(values)) for name, values in kernel.plan.tune.items()}


SPACES = (
    Space("softmax", "rowwise", {}),
    Space("reduce_sum", "two_pass", {}),
    Space(
        "matmul",
        "tiled",
        {"TILE_M": (32, 64, 128), "TILE_N": (32, 64, 128), "TILE_K": (16,), "PAD": (0,), "UNROLL": (1,)},
    ),
)


class _NoReport:
    """The CPU device without the compiler for gfx942, whose word a recording does not need."""

    def __init__(self, device: CpuTarget) -> None:
        self._device = device
        self.notes = device.notes

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        return "not asked for"

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        return self._device.compile(request)

    def workspace(self, regions: Sequence[Region], runs: int) -> Workspace:
        return self._device.workspace(regions, runs)

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
        return self._device.run(
            code, workspace, launches, count=count, timeout_s=timeout_s, reverse_fibers=reverse_fibers
        )

    def exclusive(self) -> AbstractContextManager[object]:
        return self._device.exclusive()

    def load(self) -> LoadSample | None:
        return self._device.load()

    def roofline(self, *, again: bool = False) -> Roofline | None:
        return None


def record(space: Space, folder: Path, *, budget_s: float) -> tuple[Path, int, int]:
    """Record as many configurations as `budget_s` allows: the file, how many it has, and of how many."""
    problem = Problem.load(space.problem)
    shapes = problem.shapes["cpu"]
    problem = replace(problem, shapes={"cpu": Shapes(shapes.tests[:1], shapes.benchmarks[:1])})
    kernel = Kernel.load(problem.kernel_file(space.kernel))
    lists = space.lists(kernel)
    wanted = [one for one in itertools.product(*lists.values()) if _allowed(kernel, lists, one)]
    file = folder / f"{space.name}.json"
    known = _known(file, problem, lists)
    missing = [one for one in wanted if _label(one) not in known]
    if missing and budget_s > 0:
        target = CpuTarget()
        assessor = LocalAssessor(target, _NoReport(target), problem, SETTINGS, np.random.SeedSequence(0))
        if not known:
            _open(file, target.device, problem, space, lists)
        with file.open("a", encoding="utf-8") as out:
            for label, row in _rows(assessor, kernel, lists, missing, budget_s):
                known[label] = row
                out.write(f"{json.dumps(label)}: {json.dumps(row)},\n")
                out.flush()
    return file, len(known), len(wanted)


def _rows(
    assessor: LocalAssessor,
    kernel: Kernel,
    lists: Mapping[str, tuple[ConstantValue, ...]],
    missing: Sequence[Values],
    budget_s: float,
) -> Iterator[tuple[str, dict[str, object]]]:
    began = time.perf_counter()
    kernels = [kernel.with_constants(dict(zip(lists, one, strict=True))) for one in missing]
    for place, values in enumerate(missing):
        if time.perf_counter() - began > budget_s:
            return
        for later in kernels[place + 1 : place + 2]:
            assessor.prepare(later)
        evaluation = assessor.evaluate(kernels[place], None, "screen")
        stamp = str(datetime.now(UTC))
        yield (
            _label(values),
            {**dict(zip(lists, values, strict=True)), **_measured(evaluation), "timestamp": stamp},
        )


def _measured(evaluation: Evaluation) -> dict[str, object]:
    if not evaluation.accepted:
        return {
            "time": FAILED.get(evaluation.verdict, "RuntimeFailedConfig"),
            "verdict": evaluation.verdict.value,
        }
    (timing,) = evaluation.timings
    times = [timing.low_us / 1000, timing.time_us / 1000, timing.high_us / 1000]
    return {"time": timing.time_us / 1000, "times": times}


def _allowed(kernel: Kernel, lists: Mapping[str, object], values: Values) -> bool:
    return kernel.plan.is_allowed(dict(zip(lists, values, strict=True)))


def _label(values: Values) -> str:
    return ",".join(map(str, values))


def _known(file: Path, problem: Problem, lists: Mapping[str, Sequence[ConstantValue]]) -> dict[str, object]:
    """The rows that are there already; half a row at the end is cut off."""
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    document = json.loads(whole.rstrip().rstrip(",") + "}}")
    same = {name: list(values) for name, values in lists.items()} == document["tune_params"]
    if not same or document["problem_key"] != problem.key:
        file.unlink()
        return {}
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    rows: dict[str, object] = document["cache"]
    return rows


def _open(
    file: Path, device: str, problem: Problem, space: Space, lists: Mapping[str, Sequence[ConstantValue]]
) -> None:
    head = {
        "device_name": f"{device}, by the judge: {SETTINGS.screen.pairs} batches of one shape",
        "kernel_name": space.kernel,
        "problem_size": list(problem.shapes["cpu"].benchmarks[0].values()),
        "problem_key": problem.key,
        "tune_params_keys": list(lists),
        "tune_params": lists,
        "objective": "time",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(head)[:-1] + ',\n"cache": {\n', encoding="utf-8")
