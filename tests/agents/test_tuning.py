"""The offline model's search: rules kept, nothing tried twice, progress on spaces with a known best."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Mapping

import pytest

from kernel_scientist.agents.models.glossary import topics_of
from kernel_scientist.agents.models.tuning import TuningSearch
from kernel_scientist.agents.requests import TriedTuning, Tuning

Values = Mapping[str, int]
SPACE = {
    "TM": (1, 2, 4, 8),
    "TN": (1, 2, 4, 8),
    "TILE": (8, 16, 32, 64),
    "UNROLL": (1, 2, 4, 8),
    "PAD": (0, 4),
}
WHERE = ("TILE % TM == 0", "TILE * TILE <= 1024 * TM * TN")
START = {"TM": 1, "TN": 1, "TILE": 8, "UNROLL": 1, "PAD": 0}


def _tuning(tried: Mapping[tuple[int, ...], float | None], base: Values) -> Tuning:
    return Tuning(
        names=tuple(SPACE),
        values=SPACE,
        where=WHERE,
        constants=dict(base),
        tried=tuple(
            TriedTuning(
                candidate_id=str(n), values=values, verdict="accepted" if speed else "crashed", speedup=speed
            )
            for n, (values, speed) in enumerate(tried.items())
        ),
    )  # fmt: skip


def _search(speed: Callable[[Values], float | None], rounds: int) -> dict[tuple[int, ...], float | None]:
    tried: dict[tuple[int, ...], float | None] = {tuple(START.values()): 1.0}
    base: Values = START
    for _ in range(rounds):
        for proposal in TuningSearch(_tuning(tried, base)).proposals(3):
            changed = {**base, **{move.name: int(move.new) for move in proposal.moves}}
            values = tuple(changed[name] for name in SPACE)
            assert values not in tried
            assert changed["TILE"] % changed["TM"] == 0
            assert changed["TILE"] ** 2 <= 1024 * changed["TM"] * changed["TN"]
            tried[values] = speed(changed)
        best = max(tried, key=lambda values: tried[values] or 0.0)
        base = dict(zip(SPACE, best, strict=True))
    return tried


def _peak(target: Values, failing: Callable[[Values], bool]) -> Callable[[Values], float | None]:
    def speed(values: Values) -> float | None:
        if failing(values):
            return None
        steps = sum(abs(math.log2((values[n] + 1) / (target[n] + 1))) for n in SPACE)
        return 8.0 * 0.6**steps

    return speed


def test_the_search_finds_more_in_twelve_tries_than_chance_does() -> None:
    """Against the median of random search on the same spaces with the same number of tries."""
    wins = 0
    for seed in range(9):
        draw = random.Random(seed)
        target = {name: draw.choice(values) for name, values in SPACE.items()}
        speed = _peak(target, lambda values: values["TM"] * values["TN"] == 64)
        found = max(value or 0.0 for value in _search(speed, 4).values())
        wins += found > _median_of_chance(speed, draw)
    assert wins >= 7


def _median_of_chance(speed: Callable[[Values], float | None], draw: random.Random) -> float:
    points = [dict(zip(SPACE, values, strict=True)) for values in itertools.product(*SPACE.values())]
    allowed = [
        one
        for one in points
        if one["TILE"] % one["TM"] == 0 and one["TILE"] ** 2 <= 1024 * one["TM"] * one["TN"]
    ]
    return statistics.median(max(speed(one) or 0.0 for one in draw.sample(allowed, 12)) for _ in range(51))


def test_a_small_space_is_searched_to_its_end_and_then_said_to_be_exhausted() -> None:
    tuning = Tuning(names=("A",), values={"A": (1, 2, 3)}, constants={"A": 1})
    tried = [TriedTuning(candidate_id="0", values=(1,), verdict="accepted", speedup=1.0)]
    for _ in range(2):
        search = TuningSearch(tuning.model_copy(update={"tried": tuple(tried)}))
        assert not search.exhausted
        (move,) = search.proposals(1)[0].moves
        tried.append(TriedTuning(candidate_id="1", values=(move.new,), verdict="accepted", speedup=1.1))
    search = TuningSearch(tuning.model_copy(update={"tried": tuple(tried)}))
    assert search.exhausted and search.proposals(3) == []


def test_words_and_dependent_constants_are_tunable_too() -> None:
    tuning = Tuning(
        names=("MODE", "N"),
        values={"MODE": ('"a"', '"b"'), "N": (1, 2)},
        constants={"MODE": '"a"', "N": 1, "TWICE": "2 * N"},
        where=("TWICE < 3",),
    )
    proposals = TuningSearch(tuning).proposals(5)
    assert [[(move.name, move.new) for move in one.moves] for one in proposals] == [[("MODE", '"b"')]]


def test_a_space_too_large_to_list_is_sampled() -> None:
    values = {f"P{n}": tuple(range(8)) for n in range(8)}
    tuning = Tuning(names=tuple(values), values=values, constants=dict.fromkeys(values, 0))
    proposals = TuningSearch(tuning).proposals(5)
    assert len(proposals) == 5


def test_a_prediction_s_range_holds_its_order_and_narrows_near_what_is_known() -> None:
    tried = {(1, 1, 8, 1, 0): 1.0, (2, 1, 8, 1, 0): 1.5, (4, 1, 8, 1, 0): 2.0}
    proposals = TuningSearch(_tuning(tried, {**START, "TM": 4})).proposals(5)
    assert all(one.forecast.low <= one.forecast.high for one in proposals)
    near = min(proposals, key=lambda one: one.forecast.distance)
    far = max(proposals, key=lambda one: one.forecast.distance)
    assert near.forecast.high - near.forecast.low < far.forecast.high - far.forecast.low


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("TILE_M", "tiling"),
        ("BM", "tiling"),
        ("THREAD_N", "register tiling"),
        ("TM", "register tiling"),
        ("PAD", "LDS layout"),
        ("UNROLL", "unrolling"),
        ("VEC", "vector loads"),
        ("SPLITS", "split-K"),
        ("BLOCK", "occupancy"),
        ("FOO", "tuning"),
    ],
)
def test_a_tunable_s_name_says_what_to_look_up(name: str, strategy: str) -> None:
    assert [topic.strategy for topic in topics_of([name])] == [strategy]
