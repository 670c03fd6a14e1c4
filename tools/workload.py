"""One shape's buffers for a number of runs: filled, poisoned and read back by the judge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import final

import numpy as np

from kernel_scientist.sandbox.execution import Fill, KernelLaunch, Pointer, Region

from .binding import BoundPlan
from .dtypes import is_float
from .oracle import FEW_ELEMENTS, Array, Expectation, Mismatch, poisoned
from .problem import Problem
from .problem_parts import Buffer
from .targets.base import Device

__all__ = ["Workload", "bytes_per_run"]

# All ones is NaN in every float type the hardware computes with.
_NAN_LIKE = 0xFF
_PATTERNS = (0xFF, 0xA5)
# Outputs found right that are kept of each run: one for each of two kernels that differ in the last bits.
_KEPT_OUTPUTS = 2
_OTHER_DRAWS = 4


def bytes_per_run(problem: Problem, shape: Mapping[str, int], plans: Sequence[BoundPlan]) -> int:
    """Bytes of all buffers of one run, each plan having scratch of its own."""
    buffers = sum(buffer.nbytes(shape) for buffer in problem.buffers)
    return buffers + sum(scratch.nbytes for plan in plans for scratch in plan.scratch)


@final
class Workload:
    """`runs` sets of inputs and outputs of one shape, and what each output should hold.

    Several plans can be run on it, one after another; they share inputs, outputs and equal scratch.
    References are computed when first needed and kept. An output equal, bit for bit, to one
    that was compared with its reference needs no second comparison.
    """

    def __init__(
        self,
        device: Device,
        problem: Problem,
        shape: Mapping[str, int],
        plans: Sequence[BoundPlan],
        runs: int,
    ) -> None:
        self.problem = problem
        self.shape = shape
        self.runs = runs
        self.distributions = [""] * runs
        self._outputs = [
            (index, buffer) for index, buffer in enumerate(problem.buffers) if buffer.role == "output"
        ]
        regions = [_region(buffer, shape) for buffer in problem.buffers]
        self._names: list[dict[str, int]] = []
        for plan in plans:
            names = {buffer.name: index for index, buffer in enumerate(problem.buffers)}
            spare = list(range(len(problem.buffers), len(regions)))
            for scratch in plan.scratch:
                # Plans with the same scratch share it: pages of their own would favour one of them.
                wanted = Region(scratch.name, scratch.nbytes, "write")
                index = next((i for i in spare if regions[i] == wanted), len(regions))
                if index < len(regions):
                    spare.remove(index)
                else:
                    regions.append(wanted)
                names[scratch.name] = index
            self._names.append(names)
        self._launches = [_launches(plan, names) for plan, names in zip(plans, self._names, strict=True)]
        self._expected: dict[int, list[Expectation]] = {}
        self._digests: dict[int, bytes] = {}
        self._verified: dict[int, list[list[bytes]]] = {}
        self._pattern = _NAN_LIKE
        self._batches = 0
        self.workspace = device.workspace(regions, runs)

    def __enter__(self) -> Workload:
        self.workspace.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.workspace.__exit__(kind, error, trace)

    def launches(self, plan: int) -> Sequence[KernelLaunch | Fill]:
        """What one run of plan number `plan` does, on this workload's regions."""
        return self._launches[plan]

    def fill(self, run: int, rng: np.random.Generator, distribution: str) -> None:
        """Draw the inputs of `run`."""
        arrays = self.problem.inputs(rng, distribution, self.shape)
        self.distributions[run] = distribution
        digest = hashlib.sha256()
        for index, buffer in enumerate(self.problem.buffers):
            if buffer.role == "input":
                packed = buffer.pack(arrays[buffer.name])
                np.frombuffer(self.workspace.view(run, index), dtype=np.uint8)[:] = packed
                digest.update(packed.data)
        self._digests[run] = digest.digest()
        self._expected.pop(run, None)
        self._verified.pop(run, None)

    def poison(self) -> None:
        """Overwrite every output and all scratch of every run, before a batch."""
        # For integers all ones is a plausible value (-1), so that the pattern must not stay the same.
        integers = any(not is_float(buffer.dtype) for _, buffer in self._outputs)
        self._pattern = _PATTERNS[self._batches % 2] if integers else _NAN_LIKE
        self._batches += 1
        self.workspace.poison(self._pattern)

    def suspects(self, count: int) -> list[int]:
        """Those of the first `count` runs whose outputs were not yet compared with their reference."""
        return [run for run in range(count) if not self._is_verified(run)]

    def maybe_unwritten(self, run: int) -> bool:
        """Whether some element of an output still looks as it did before the batch."""
        return any(
            bool(poisoned(self._array(run, index, buffer), self._pattern).any())
            for index, buffer in self._outputs
        )

    def compare(self, run: int) -> Mismatch | None:
        """What is wrong with the outputs of `run`, every element compared with the reference."""
        for expectation, (index, buffer) in zip(self._expectations(run), self._outputs, strict=True):
            mismatch = expectation.compare(self._array(run, index, buffer), self._pattern)
            if mismatch is not None:
                return mismatch
        known = self._verified.setdefault(run, [])
        known.append([self.workspace.view(run, index).tobytes() for index, _ in self._outputs])
        del known[:-_KEPT_OUTPUTS]
        return None

    def changed_inputs(self) -> int | None:
        """The first run whose inputs are not what the judge put there."""
        for run in range(self.runs):
            digest = hashlib.sha256()
            for index, buffer in enumerate(self.problem.buffers):
                if buffer.role == "input":
                    digest.update(self.workspace.view(run, index))
            if digest.digest() != self._digests[run]:
                return run
        return None

    def _array(self, run: int, index: int, buffer: Buffer) -> Array:
        return buffer.view(self.workspace.view(run, index), self.shape)

    def _is_verified(self, run: int) -> bool:
        views = [self.workspace.view(run, index) for index, _ in self._outputs]
        return any(
            all(view.tobytes() == right for view, right in zip(views, known, strict=True))
            for known in self._verified.get(run, ())
        )

    def _expectations(self, run: int) -> list[Expectation]:
        known = self._expected.get(run)
        if known is None:
            known = self._expected[run] = self._refer(run)
        return known

    def _refer(self, run: int) -> list[Expectation]:
        problem, shape = self.problem, self.shape
        # Copies: the reference is the user's code and may keep or change what it is given.
        inputs = {
            buffer.name: self._array(run, index, buffer).copy()
            for index, buffer in enumerate(problem.buffers)
            if buffer.role == "input"
        }
        expected = problem.reference(inputs, shape)
        allowed = problem.allowance(expected, inputs, shape)
        rtol = float(problem.tolerance.rtol.evaluate(shape))
        atol = float(problem.tolerance.atol.evaluate(shape))
        expectations = [
            Expectation(
                buffer.name, buffer.dtype, expected[buffer.name], allowed[buffer.name], rtol=rtol, atol=atol
            )
            for _, buffer in self._outputs
        ]
        for number, expectation in enumerate(expectations):
            if expectation.is_loose:
                idle = self._idle_answers(run, number, expectation.values, inputs)
                if idle:
                    expectation.outdo(*idle)
        return expectations

    def _idle_answers(self, run: int, number: int, wanted: Array, inputs: Mapping[str, Array]) -> list[Array]:
        """What output `number` could be without computing anything from the inputs of `run`."""
        name = self._outputs[number][1].name
        if wanted.size < FEW_ELEMENTS:
            rng = np.random.default_rng(list(self._digests[run]))
            draws = [
                self.problem.inputs(rng, self.distributions[run], self.shape) for _ in range(_OTHER_DRAWS)
            ]
            return [self.problem.reference(draw, self.shape)[name] for draw in draws]
        answers = [array.astype(np.float64) for array in inputs.values() if array.shape == wanted.shape]
        for other, known in self._expected.items():
            if other != run and self.distributions[other] == self.distributions[run]:
                return [*answers, known[number].values]
        return answers


def _region(buffer: Buffer, shape: Mapping[str, int]) -> Region:
    return Region(buffer.name, buffer.nbytes(shape), "read" if buffer.role == "input" else "write")


def _launches(plan: BoundPlan, names: Mapping[str, int]) -> list[KernelLaunch | Fill]:
    fills: list[KernelLaunch | Fill] = [
        Fill(names[scratch.name], scratch.init, scratch.dtype)
        for scratch in plan.scratch
        if scratch.init is not None
    ]
    return fills + [
        KernelLaunch(
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            dynamic_lds_bytes=launch.lds_bytes,
            arguments=tuple(
                Pointer(names[value]) if isinstance(value, str) else value for value in launch.arguments
            ),
        )
        for launch in plan.launches
    ]
