"""Kernels that are best on different shapes become one that runs each where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.agents import Candidate, Config, Run, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import SearchConfig
from kernel_scientist.agents.policies.joining import MOST_VARIANTS, leaders, propose_portfolio
from kernel_scientist.agents.policies.portfolio import JoinError, join_kernels
from kernel_scientist.agents.policies.split_shapes import conditional, conditions, grow
from kernel_scientist.agents.population import Population
from kernel_scientist.tools.binding import bind
from kernel_scientist.tools.expressions import Expression
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets import resolve_target
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Shelf
from .test_policies import BASELINE, add, evaluation

MATMUL = Problem.load("matmul")
SHAPES = MATMUL.shapes["cpu"].benchmarks

shape_lists = st.lists(
    st.fixed_dictionaries({"m": st.integers(1, 40), "n": st.integers(1, 40), "k": st.integers(1, 40)}),
    min_size=1, max_size=12, unique_by=lambda shape: tuple(shape.values()),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(shapes=shape_lists, data=st.data())
def test_the_conditions_pick_each_shape_s_winner_and_exactly_one_anywhere(
    shapes: list[dict[str, int]], data: Any
) -> None:
    winners = data.draw(st.lists(st.integers(0, 3), min_size=len(shapes), max_size=len(shapes)))
    tree = grow(shapes, winners)
    tests = {number: conditions(tree, number) for number in range(4)}
    chosen = conditional(tree, ["0", "1", "2", "3"])
    for shape, winner in zip(shapes, winners, strict=True):
        assert Expression.parse(chosen).evaluate(shape) == winner
    elsewhere = data.draw(shape_lists)
    for shape in [*shapes, *elsewhere]:
        held = [n for n, text in tests.items() if text and Expression.parse(text).evaluate(shape)]
        assert held == [Expression.parse(chosen).evaluate(shape)]


def variant(**constants: int) -> Kernel:
    return BASELINE.with_constants(constants)


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=3, unique=True),
    winners=st.lists(st.integers(0, 2), min_size=len(SHAPES), max_size=len(SHAPES)),
    others=shape_lists,
)
def test_a_joined_kernel_binds_to_the_winner_s_plan_on_every_shape(
    values: list[int], winners: list[int], others: list[dict[str, int]]
) -> None:
    """Constants only: on each shape the very launches and constants of the kernel that leads there."""
    used = sorted({winner % len(values) for winner in winners})
    kernels = [variant(THREAD_M=values[number], TILE_K=8 * values[number]) for number in used]
    choice = [used.index(winner % len(values)) for winner in winners]
    joined = join_kernels(kernels, SHAPES, choice)
    assert joined.code == BASELINE.code
    for shape, number in zip(SHAPES, choice, strict=True):
        assert bind(joined, MATMUL, shape) == bind(kernels[number], MATMUL, shape)
    for shape in others:
        bound = bind(joined, MATMUL, shape)
        assert any(bound == bind(one, MATMUL, shape) for one in kernels)


def other_code(kernel: Kernel) -> Kernel:
    """The same computation in another code, with a macro and scratch of its own."""
    scratch = '[[scratch]]\nname = "extra"\ndtype = "float32"\nsize = "m"\n[[launch]]'
    source = kernel.source
    for old, new in (
        ("int column(int tx", "int place(int tx"),
        ("column(tx, j)", "place(tx, j)"),
        ("#include <hip/hip_runtime.h>", "#include <hip/hip_runtime.h>\n#define AT(x) ((x) + 0)"),
        ("row0 + i < m", "AT(row0) + i < m"),
        ("[[launch]]", scratch),
    ):
        assert old in source
        source = source.replace(old, new)
    return Kernel.parse(source)


def test_kernels_of_different_code_get_namespaces_constants_and_scratch_of_their_own() -> None:
    first, second = variant(TILE_M=32, THREAD_M=2), other_code(variant(TILE_N=32, THREAD_N=2))
    winners = [index % 2 for index in range(len(SHAPES))]
    joined = join_kernels([first, second], SHAPES, winners)

    assert joined.code.count("#include") == 1 and "#undef AT" in joined.code
    for shape, winner in zip(SHAPES, winners, strict=True):
        bound = bind(joined, MATMUL, shape)
        (entry,) = bound.entries
        assert entry.kernel == f"variant_{winner}::matmul"
        alone = bind([first, second][winner], MATMUL, shape)
        assert [(one.grid, one.block, one.lds_bytes) for one in bound.launches] == [
            (one.grid, one.block, one.lds_bytes) for one in alone.launches
        ]
        constants = dict(bound.constants)
        assert {name: constants[f"V{winner}_{name}"] for name, _ in alone.constants} == dict(alone.constants)
        sizes = {one.name: one.elements for one in bound.scratch}
        assert sizes == {"v1_extra": shape["m"] if winner else 1}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("#define AT(x) ((x) + 0)", "#define AT(x) ((x) + 0)\n#define NAME(x) #x\n", "text of names"),
        ("#define AT(x) ((x) + 0)", "#define AT(x) ((x) + 0)\nint V0_TILE_M;", "a name that its variant"),
    ],
)
def test_texts_that_cannot_be_joined_are_refused_with_the_reason(old: str, new: str, why: str) -> None:
    odd = other_code(BASELINE)
    odd = Kernel.parse(odd.source.replace(old, new))
    with pytest.raises(JoinError, match=why):
        join_kernels([odd, variant(TILE_M=32)], SHAPES, [0] + [1] * (len(SHAPES) - 1))


@pytest.fixture
def population() -> Population:
    made = Population(BASELINE)
    made.record("0000", evaluation(1.0, 1.0))
    return made


def test_the_leaders_are_the_fastest_overall_and_those_that_beat_it_somewhere(population: Population) -> None:
    assert propose_portfolio(population, SearchConfig()) is None
    best, ahead = add(population, evaluation(4.0, 3.0)), add(population, evaluation(1.0, 6.0))
    population.best_id = best.id
    assert [one.id for one in leaders(population)] == [best.id, ahead.id]
    assert propose_portfolio(population, SearchConfig(portfolio_gain=90.0)) is None
    made = propose_portfolio(population, SearchConfig())
    assert made is not None and not isinstance(made, str)
    assert (made.base, made.others) == (best, (ahead,))
    assert made.experiment.strategy == "portfolio"
    assert made.experiment.uplift_max == pytest.approx(100 * ((4 * 6) ** 0.5 / 12**0.5 - 1), abs=0.1)
    assert f"Run {ahead.id} on m=128 (6.00x there)." in made.experiment.rubric


def test_a_lead_within_the_uncertainty_is_none(population: Population) -> None:
    best = add(population, evaluation(4.0, 3.0))
    add(population, evaluation(1.0, 3.0))
    population.best_id = best.id
    assert {one.id for one in leaders(population)} == {best.id}
    assert MOST_VARIANTS >= 2


def by_shape(values: Mapping[str, Any]) -> FakeAnswer:
    """Small shapes like one row a thread, large ones many; a portfolio can have both."""
    small = values["m"] * values["n"] <= 128 * 128
    rows = values["THREAD_M"]
    return FakeAnswer(time_us=(2000.0 if values["TILE_M"] == 16 else 1000.0) * (rows if small else 1 / rows))


def test_a_session_ends_with_a_portfolio_when_different_candidates_lead(tmp_path: Path) -> None:
    events: list[ev.Event] = []
    target = FakeTarget(by_shape, by_shape=True)
    session = Session(
        "matmul", target=target, knowledge=Shelf(), runs_dir=tmp_path / "runs", generations=4, experiments=3,
        observer=events.append, config=Config(seed=3),
    )  # fmt: skip
    result = session.run()

    (made,) = portfolios(result.run)
    assert made.experiment is not None and made.experiment.strategy == "portfolio"
    assert made.finding is not None and made.finding.calibration == "within"
    assert result.best is not None and result.best.candidate_id == made.id, "confirmed like any other"
    assert " if " in made.source and made.report.startswith("Joined by rule")
    said = [event for event in events if isinstance(event, ev.MessageSent) and event.agent == "portfolio"]
    assert [event.content.type for event in said] == ["hypotheses", "finding"]
    assert result.run.info.totals.evaluations == len(result.run.candidates()) - 1

    longer = Session.resume(result.run, target=target, knowledge=Shelf(), generations=6).run()
    assert longer.stop_reason == "all 6 generations are done", "the model goes on past the portfolio"
    kept = portfolios(longer.run)
    assert kept[0] == made and len({one.source for one in kept}) == len(kept), "none is made twice"


def portfolios(run: Run) -> list[Candidate]:
    return [one for one in run.candidates() if one.generation == 0 and one.parent_id is not None]


QUICK = JudgeSettings(
    screen=TierSettings(3, 3, 0.3, 1), confirm=TierSettings(6, 6, 1.0, 4), batch_s=0.005, held_out_shapes=1
)


@pytest.mark.parametrize("second", [pytest.param("constants", marks=pytest.mark.slow), "code"])
@pytest.mark.slow
def test_the_real_judge_accepts_a_joined_kernel(second: str) -> None:
    first = variant(TILE_M=32, THREAD_M=2)
    other = variant(THREAD_N=4)
    kernels = [first, other_code(other) if second == "code" else other]
    joined = join_kernels(kernels, SHAPES, [index % 2 for index in range(len(SHAPES))])
    judge = Judge(MATMUL, resolve_target("cpu"), BASELINE, settings=QUICK, seed=1)
    answer = judge.evaluate(joined)
    assert answer.accepted, answer.message
