"""What is wrong with a problem folder beyond its keys: every function, shape and kernel is tried.

Covered: marks left to fill in, reference.py on every test shape and distribution, expected values that are
finite and not trivial, kernels whose plans bind on every shape, shapes within the domain. Not covered:
compiling and running the kernels (the judge does that), and whether the reference computes what the title
says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .binding import bind
from .dtypes import is_float
from .errors import PlanError, ProblemError
from .kernel import Kernel
from .marks import find_marks
from .problem import Problem
from .reference import Array

__all__ = ["check_problem"]

_SEED = 20506
_TRIED_ELEMENTS = 200_000


def check_problem(problem: Problem) -> list[str]:
    """One sentence per finding, none when all is well; ProblemError when reference.py cannot be used."""
    folder = problem.folder
    marks = list(find_marks([folder / "problem.toml", folder / "reference.py", *problem.kernels.values()]))
    findings = [*map(str, marks), *_formulas(problem), *_plans(problem)]
    if any(mark.file == "reference.py" for mark in marks):
        # It says itself that it is not finished.
        return list(dict.fromkeys(findings))
    shapes = _tried_shapes(problem)
    for shape in shapes:
        # A single element may come out as zero by chance; the largest shape is what counts for that.
        findings.extend(_answers(problem, shape, zeros_count=shape is shapes[-1]))
    findings.extend(_repeats(problem, shapes[-1]))
    return list(dict.fromkeys(findings))


def _formulas(problem: Problem) -> Iterator[str]:
    for target, shapes in problem.shapes.items():
        for shape in (*shapes.tests, *shapes.benchmarks):
            for name, expression in (("flops", problem.flops), ("bytes", problem.bytes)):
                try:
                    value = expression.evaluate(shape)
                except ProblemError as error:
                    yield error.message
                    continue
                if value < 0 or (name == "bytes" and value == 0):
                    yield f"speed_of_light.{name} is {value} for {_text(shape)} of {target}"


def _plans(problem: Problem) -> Iterator[str]:
    for path in problem.kernels.values():
        try:
            kernel = Kernel.load(path)
            for shapes in problem.shapes.values():
                for shape in (*shapes.tests, *shapes.benchmarks):
                    bind(kernel, problem, shape)
        except PlanError as error:
            yield str(error)


def _tried_shapes(problem: Problem) -> list[Mapping[str, int]]:
    """The test shapes small enough to try at once, each once; at least the smallest."""

    def elements(shape: Mapping[str, int]) -> int:
        return sum(buffer.elements(shape) for buffer in problem.buffers)

    tests = {tuple(sorted(shape.items())): shape for one in problem.shapes.values() for shape in one.tests}
    ordered = sorted(tests.values(), key=elements)
    return [shape for shape in ordered if elements(shape) <= _TRIED_ELEMENTS] or ordered[:1]


def _answers(problem: Problem, shape: Mapping[str, int], *, zeros_count: bool) -> Iterator[str]:
    for distribution in problem.distributions:
        rng = np.random.default_rng(_SEED)
        inputs = problem.inputs(rng, distribution, shape)
        expected = problem.reference(inputs, shape)
        allowed = problem.allowance(expected, inputs, shape)
        for name, want in expected.items():
            place = f"output '{name}' for distribution '{distribution}' and {_text(shape)}"
            if is_float(problem.buffer(name).dtype):
                yield from _answer(want, allowed[name], place, zeros_count)


def _answer(want: Array, allowed: Array, place: str, zeros_count: bool) -> Iterator[str]:
    if not np.isfinite(want).all():
        yield f"{place}: the reference has values that are not finite; draw inputs that avoid them"
    elif not np.isfinite(allowed).all() or (allowed < 0).any():
        yield f"{place}: the tolerance is negative or not finite"
    elif zeros_count and (np.abs(want) <= allowed).all():
        yield f"{place}: zeros would pass; lower atol or draw larger inputs"


def _repeats(problem: Problem, shape: Mapping[str, int]) -> Iterator[str]:
    distribution = problem.distributions[0]
    first, again, other = (
        problem.inputs(np.random.default_rng(seed), distribution, shape) for seed in (_SEED, _SEED, _SEED + 1)
    )
    if any(first[name].tobytes() != again[name].tobytes() for name in first):
        yield "inputs() gives different arrays for the same rng; draw from rng alone"
    if first and all(first[name].tobytes() == other[name].tobytes() for name in first):
        yield "inputs() gives the same arrays for different rngs; draw from rng"


def _text(shape: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {extent}" for name, extent in shape.items())
