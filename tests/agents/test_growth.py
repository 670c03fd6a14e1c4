"""A long run costs a request no more than a young one: work and size are counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from kernel_scientist.agents.benchmarker import finding_on
from kernel_scientist.agents.digest import digest_of
from kernel_scientist.agents.messages import Experiment
from kernel_scientist.agents.policies import STRATEGIES
from kernel_scientist.agents.policies.meaning import EmbeddedMeaning
from kernel_scientist.agents.policies.record import calibration_of, strategy_records
from kernel_scientist.agents.policies.repeats import find_repeats
from kernel_scientist.agents.population import Member, Population
from kernel_scientist.agents.views import TRIED, calibration_text, population_rows, strategy_views, tuning_of
from kernel_scientist.knowledge import FakeEmbedder
from kernel_scientist.tools.evaluation import Evaluation, Verdict
from kernel_scientist.tools.kernel import Kernel

from .test_policies import evaluation

YOUNG, OLD = 280, 700
SMALL = Kernel.parse(
    """/* plan
[constants]
TILE = 1
[tune]
TILE = [1, 2]
[[launch]]
kernel = "copy"
grid = ["1"]
block = ["TILE"]
args = ["a"]
*/
#include <hip/hip_runtime.h>
__global__ void copy(float* a) { a[threadIdx.x] = TILE; }
"""
)


def idea(number: int) -> Experiment:
    return Experiment(
        description=f"idea {number}",
        rubric=("r",),
        strategy=STRATEGIES[number % len(STRATEGIES)],
        uplift_min=0,
        uplift_max=10,
        innovation=1,
    )


def grown(size: int) -> Population:
    """A population of so many members on one Base, every third a failure; speeds rise and fall."""
    made = Population(SMALL)
    made.record("0000", evaluation(1.0))
    for number in range(1, size):
        source = SMALL.source.replace("TILE = 1\n", f"TILE = {number}\n")
        member = made.add(source, parent_id="0000", generation=number // 3 + 1, experiment=idea(number))
        accepted = evaluation(1.0 + number * 37 % 101 / 100)
        if number % 3 == 0:
            made.record(member.id, _refused(accepted))
        else:
            made.record(member.id, accepted)
        assert member.experiment is not None
        made.conclude(member, finding_on(member, made.baseline, 0, member.experiment, None))
    return made


def _refused(accepted: Evaluation) -> Evaluation:
    return replace(accepted, verdict=Verdict.WRONG_RESULT, message="4 of 64 values differ", speedup=None)


@pytest.fixture(scope="module")
def populations() -> tuple[Population, Population]:
    return grown(YOUNG), grown(OLD)


def steps(work: Callable[[], object]) -> int:
    """How many instructions of the interpreter `work` takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _repeats(population: Population) -> object:
    new = [idea(100_000 + number) for number in range(5)]
    return find_repeats(new, population.baseline, population, EmbeddedMeaning(FakeEmbedder()))


VIEWS: dict[str, Callable[[Population], Any]] = {
    "digest": digest_of,
    "population": population_rows,
    "tuning": lambda population: tuning_of(population.baseline, population),
    "strategies": strategy_views,
    "calibration": calibration_text,
    "repeats": _repeats,
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_a_request_shows_takes_no_more_work_in_a_longer_run(
    populations: tuple[Population, Population], name: str
) -> None:
    young, old = populations
    view = VIEWS[name]
    for population in populations:
        view(population)  # what is kept from one request to the next

    assert steps(lambda: view(old)) <= 1.05 * steps(lambda: view(young))


@pytest.mark.parametrize("name", ["digest", "population", "tuning", "strategies"])
def test_what_a_request_shows_grows_no_longer(populations: tuple[Population, Population], name: str) -> None:
    young, old = (str(VIEWS[name](one)) for one in populations)
    assert len(old) <= 1.05 * len(young)


def test_the_kept_tally_is_what_a_walk_over_all_members_finds(
    populations: tuple[Population, Population],
) -> None:
    population = populations[0]
    members = list(population)
    tally = population.tally
    assert tally.fastest == sorted(
        (one for one in members if one.accepted), key=lambda one: -(one.speedup or 0.0)
    )
    assert tally.tried == members[1:]
    assert tally.failed == [one for one in members if not one.accepted]
    assert tally.strategies.records == strategy_records(members)
    assert tally.strategies.calibration == calibration_of(members)
    tuning = tuning_of(population.baseline, population)
    assert tuning is not None and len(tuning.tried) <= TRIED
    assert max(one.speedup or 0.0 for one in tuning.tried) == population.accepted()[0].speedup
    assert tuning.tried[-1].candidate_id == members[-1].id


def test_the_order_in_which_members_are_judged_does_not_matter() -> None:
    def made(order: Callable[[list[Member]], list[Member]]) -> Population:
        population = Population(SMALL)
        members = [population.baseline]
        for number in range(1, 30):
            # Three candidates for each configuration.
            source = SMALL.source.replace("TILE = 1\n", f"TILE = {4 + number // 3}\n") + f"// {number}\n"
            members.append(population.add(source, parent_id="0000", experiment=idea(number)))
        for member in order(members):
            population.record(member.id, evaluation(1.0 + int(member.id) * 7 % 11 / 10))
        return population

    forward, backward = made(lambda members: members), made(lambda members: members[::-1])
    for name in ("digest", "population", "tuning"):
        assert VIEWS[name](forward) == VIEWS[name](backward)
