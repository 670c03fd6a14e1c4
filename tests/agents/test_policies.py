"""Search policies: what each builds on, over whole sessions on scripted times."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import SearchConfig
from kernel_scientist.agents.messages import Experiment, Selection
from kernel_scientist.agents.policies import POLICIES, STRATEGIES, Parents, Situation, make_policy
from kernel_scientist.agents.policies.behaviour import behaviour_of
from kernel_scientist.agents.policies.islands import island_of
from kernel_scientist.agents.policies.map_elites import archive_of
from kernel_scientist.agents.policies.strategy import strategy_named
from kernel_scientist.agents.population import Member, Population
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.resources import KernelResources
from kernel_scientist.tools.evaluation import Evaluation, Interval, ShapeTiming, Verdict
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem

from .conftest import Hold

BASELINE = Kernel.load(Problem.load("matmul").default_kernel)


def evaluation(*speedups: float, resources: tuple[KernelResources, ...] = ()) -> Evaluation:
    """An accepted evaluation with a speed-up for each of two shapes (one figure: the same on both)."""
    values = speedups if len(speedups) == 2 else (speedups[0], speedups[0])
    timings = tuple(
        ShapeTiming({"m": 64 * n}, 100.0 / s, 99.0 / s, 101.0 / s, 3, 1, 100.0, Interval(s, s, s, 0.99))
        for n, s in enumerate(values, start=1)
    )
    mean = (values[0] * values[1]) ** 0.5
    return Evaluation(
        Verdict.ACCEPTED, "", "screen", "fake", "none", "none", "b", "k", timings=timings,
        speedup=Interval(mean, mean * 0.99, mean * 1.01, 0.99), resources=resources,
    )  # fmt: skip


def experiment(strategy: str = "tiling") -> Experiment:
    return Experiment(
        description="d", rubric=("r",), strategy=strategy, uplift_min=0, uplift_max=10, innovation=1
    )


def add(
    population: Population,
    result: Evaluation | None,
    *,
    parent: str = "0000",
    generation: int = 1,
    strategy: str = "tiling",
    idea: Experiment | None = None,
) -> Member:
    source = BASELINE.source + f"\n// {len(population)}\n"
    idea = idea or experiment(strategy)
    member = population.add(source, parent_id=parent, generation=generation, experiment=idea)
    if result is not None:
        population.record(member.id, result)
    return member


@pytest.fixture
def population() -> Population:
    made = Population(BASELINE)
    made.record("0000", evaluation(1.0))
    return made


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "paper"])
def test_a_policy_s_session_improves_the_kernel_and_asks_no_model_to_select(hold: Hold, name: str) -> None:
    held = hold(generations=3, experiments=2, policy=name)

    assert held.result.exit_code == 0
    selections: list[Selection] = held.contents(Selection)
    assert [one.chosen_by for one in selections] == ["policy"] * 3
    assert all(f"By policy {name}" in one.reasons for one in selections)
    assert not [call for call in held.of(ev.ModelCall) if call.agent == "selector"]
    assert held.run.info.policy == name


def test_under_the_paper_s_policy_the_model_selects(hold: Hold) -> None:
    held = hold(generations=1)
    assert [one.chosen_by for one in held.contents(Selection)] == ["model"]
    assert [call.purpose for call in held.of(ev.ModelCall) if call.agent == "selector"] == ["select"]


def test_a_session_takes_a_policy_of_the_user_s_own(hold: Hold) -> None:
    class Baseline:
        name = "always-the-start"

        def choose(self, situation: Situation) -> Parents:
            return Parents("0000", None, f"Generation {situation.generation}.", goal="Try padding.")

    held = hold(generations=2, experiments=1, policy=Baseline())
    assert [one.base_id for one in held.contents(Selection)] == ["0000", "0000"]
    assert held.run.info.policy == "always-the-start"
    requests = [str(call.request) for call in held.of(ev.ModelCall) if call.agent == "researcher"]
    assert "Try padding." in requests[0]


@pytest.mark.parametrize(("base", "reference"), [("0042", None), ("0000", "0042")])
def test_a_policy_that_chooses_what_is_not_there_ends_the_session_with_a_sentence(
    hold: Hold, base: str, reference: str | None
) -> None:
    class Wrong:
        name = "wrong"

        def choose(self, situation: Situation) -> Parents:
            return Parents(base, reference, "")

    with pytest.raises(UsageError, match="search policy 'wrong' chose '0042'"):
        hold(policy=Wrong())


@pytest.mark.parametrize(
    ("name", "hint"), [("greedi", "greedy"), ("MAP_Elites", "map-elites"), ("x", "paper")]
)
def test_an_unknown_policy_is_one_sentence(hold: Hold, name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        hold(policy=name)


def test_greedy_builds_on_the_fastest_and_leaves_it_when_nothing_comes_of_it(population: Population) -> None:
    fast, next_fast = add(population, evaluation(3.0)), add(population, evaluation(2.0))
    policy = make_policy("greedy")
    settings = SearchConfig(patience=2)

    def chosen(generation: int) -> str:
        parents = policy.choose(Situation(population, generation, settings))
        assert parents is not None
        return parents.base_id

    assert chosen(2) == fast.id
    for generation in (2, 3):
        add(population, evaluation(1.5), parent=fast.id, generation=generation)
    assert chosen(4) == next_fast.id
    add(population, evaluation(4.0), parent=fast.id, generation=4)
    assert chosen(5) == "0005"


def test_a_reference_is_the_kernel_that_is_ahead_on_some_shape(population: Population) -> None:
    add(population, evaluation(4.0, 4.0))
    ahead = add(population, evaluation(1.0, 6.0))
    parents = make_policy("greedy").choose(Situation(population, 2))
    assert parents is not None and parents.reference_id == ahead.id


def resources(mfma: int, lds: int, occupancy: int) -> KernelResources:
    return KernelResources("k", "gfx942", 64, 0, 16, 0, 0, lds, 0, occupancy, "vgprs", {"mfma": mfma})


def test_map_elites_keeps_the_fastest_of_each_behaviour_and_visits_all(population: Population) -> None:
    slow = add(population, evaluation(1.2, resources=(resources(4, 0, 8),)), strategy="MFMA")
    fast = add(population, evaluation(2.0, resources=(resources(9, 0, 7),)), strategy="matrix cores")
    other = add(population, evaluation(1.1, resources=(resources(0, 40_000, 1),)), strategy="LDS layout")
    assert str(behaviour_of(fast)) == "MFMA, matrix units, no LDS, high occupancy"
    assert str(behaviour_of(other)) == "LDS layout, vector units, much LDS, low occupancy"
    assert {one.id for one in archive_of(population).values()} == {"0000", fast.id, other.id}

    policy = make_policy("map-elites")
    parents = [policy.choose(Situation(population, generation)) for generation in range(1, 30)]
    bases = {one.base_id for one in parents if one is not None}
    assert bases == {"0000", fast.id, other.id} and slow.id not in bases
    assert parents[0] is not None and "tiling" in parents[0].goal and "MFMA" not in parents[0].goal


def test_islands_keep_to_themselves_but_for_migration(population: Population) -> None:
    settings = SearchConfig(islands=2, migrate_every=2, patience=50)
    policy = make_policy("islands")
    home = {"0000": {0, 1}}
    for generation in range(1, 13):
        parents = policy.choose(Situation(population, generation, settings))
        assert parents is not None
        island = island_of(generation, 2)
        migrates = (generation - 1) // 2 in (2, 4)
        if island not in home[parents.base_id]:
            assert migrates and "came from the neighbouring island" in parents.reasons
        child = add(
            population, evaluation(1.0 + 0.1 * generation), parent=parents.base_id, generation=generation
        )
        home[child.id] = {island}


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "paper"])
def test_a_policy_is_a_function_of_what_it_is_shown(population: Population, name: str) -> None:
    for number in range(6):
        add(population, evaluation(1.0 + number / 10), generation=1 + number, strategy=STRATEGIES[number])
    situation = Situation(population, 7, seed=5)
    assert make_policy(name).choose(situation) == make_policy(name).choose(situation)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "paper"])
def test_a_base_that_another_conversation_works_on_is_left_to_it(population: Population, name: str) -> None:
    for number in range(4):
        add(population, evaluation(2.0 + number), strategy=STRATEGIES[number])
    busy: set[str] = set()
    for _ in range(3):
        parents = make_policy(name).choose(Situation(population, 4, busy=frozenset(busy)))
        assert parents is not None and parents.base_id not in busy
        busy.add(parents.base_id)


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "paper"])
def test_a_population_of_the_starting_kernel_alone_is_enough(population: Population, name: str) -> None:
    for generation in range(1, 8):
        parents = make_policy(name).choose(Situation(population, generation, busy=frozenset({"0000"})))
        assert parents is not None and (parents.base_id, parents.reference_id) == ("0000", None)


@pytest.mark.parametrize(
    ("text", "name"),
    [(name, name) for name in STRATEGIES]
    + [("Split K", "split-K"), ("shared memory padding", "LDS layout"),
       ("register blocking", "register tiling"),
       ("use float4", "vector loads"), ("double buffering", "pipelining"), ("MATRIX CORES", "MFMA"),
       ("joint tuning", "tuning"), ("software_pipelining", "pipelining"), ("kernel fusion", "fusion"),
       ("", "other"), ("magic", "other"), ("x" * 10_000, "other")],
)  # fmt: skip
def test_a_strategy_is_one_of_a_closed_set_whatever_it_is_called(text: str, name: Any) -> None:
    assert strategy_named(text) == name
