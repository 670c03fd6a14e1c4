"""The pure search: the same history, the same answer; nothing twice; ahead of chance."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable

import numpy as np
import pytest

from kernel_scientist.agents.models.failures import FailureModel, fit_failures
from kernel_scientist.agents.models.search import Point, SearchSpace, SurrogateSearch
from kernel_scientist.agents.models.surrogate import Kernel, Surrogate

SIZES = (8, 6, 4, 2)


def _speed(point: Point) -> float | None:
    """A hill with small steps; a corner of the space fails."""
    a, b, c, d = point
    if a + b > 10:
        return None
    return -0.5 * abs(a - 5) - 0.4 * abs(b - 2) - 0.3 * abs(c - 1) + 0.3 * d - 0.01 * ((a * 7 + b * 3) % 5)


def _space(*, listed: bool) -> SearchSpace:
    points = [one for one in itertools.product(*map(range, SIZES)) if sum(one) != 3]
    return SearchSpace(SIZES, (True,) * 4, lambda one: sum(one) != 3, points if listed else None)


def _run(space: SearchSpace, seed: int, count: int) -> dict[Point, float | None]:
    search, tried = SurrogateSearch(space, seed=seed), dict[Point, float | None]()
    while len(tried) < count and (point := search.propose(tried)) is not None:
        assert point not in tried and space.allowed(point)
        tried[point] = _speed(point)
    return tried


def _best(tried: dict[Point, float | None]) -> float:
    return max((speed for speed in tried.values() if speed is not None), default=-math.inf)


@pytest.mark.parametrize("listed", [True, False])
def test_it_is_ahead_of_chance_after_thirty(listed: bool) -> None:
    space = _space(listed=listed)
    every = [one for one in itertools.product(*map(range, SIZES)) if space.allowed(one)]
    chance = [
        _best({one: _speed(one) for one in random.Random(seed).sample(every, 30)}) for seed in range(31)
    ]
    found = [_best(_run(space, seed, 30)) for seed in range(3)]
    assert statistics.median(found) > statistics.median(chance)


def test_an_answer_depends_on_the_history_alone() -> None:
    space = _space(listed=True)
    tried = _run(space, 1, 14)
    assert SurrogateSearch(space, seed=1).propose(tried) == SurrogateSearch(space, seed=1).propose(tried)
    again = SurrogateSearch(space, seed=1)
    again.propose(dict(itertools.islice(tried.items(), 9)))
    assert again.propose(tried) == SurrogateSearch(space, seed=1).propose(tried)


@pytest.mark.parametrize("listed", [True, False])
def test_a_small_space_is_searched_to_its_end(listed: bool) -> None:
    allowed = {(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)}
    space = SearchSpace((3, 3), (True, False), allowed.__contains__, sorted(allowed) if listed else None)
    search, tried = SurrogateSearch(space), dict[Point, float | None]()
    while (point := search.propose(tried)) is not None:
        tried[point] = float(sum(point))
    assert tried.keys() == allowed


def test_where_everything_fails_it_goes_on_elsewhere() -> None:
    space = _space(listed=True)
    search, tried = SurrogateSearch(space), dict[Point, float | None]()
    for _ in range(12):
        point = search.propose(tried)
        assert point is not None and point not in tried
        tried[point] = None


def test_the_same_seed_makes_the_same_run_and_another_seed_another() -> None:
    space = _space(listed=False)
    first, again, other = (list(_run(space, seed, 16)) for seed in (1, 1, 2))
    assert first == again != other


def _draw_spaces() -> list[Callable[[Point], float | None]]:
    """Spaces that the search was not made for: single effects, a joint one, a rough one, and a limit."""
    found: list[Callable[[Point], float | None]] = []
    for seed in range(3):
        draw = random.Random(seed)
        tables = [[draw.random() for _ in range(size)] for size in SIZES]
        grain = {one: draw.random() for one in itertools.product(*map(range, SIZES))}
        limit = draw.randrange(9, 13)

        def speed(
            point: Point, tables: Tables = tables, grain: Grain = grain, limit: int = limit
        ) -> float | None:
            if sum(point) > limit:
                return None
            single = sum(table[place] for table, place in zip(tables, point, strict=True))
            return single - 0.2 * abs(point[0] - 2 * point[2]) + 0.3 * grain[point]

        found.append(speed)
    return found


Tables = list[list[float]]
Grain = dict[Point, float]


def test_it_beats_chance_on_most_of_many_spaces_and_seeds() -> None:
    """Of 12 runs with 25 tries each; as many random ones would be above the median of random ones in half."""
    every, wins = list(itertools.product(*map(range, SIZES))), 0
    space = SearchSpace(SIZES, (True,) * 4, lambda _: True, every)
    for speed in _draw_spaces():
        chance = [_best({one: speed(one) for one in random.Random(n).sample(every, 25)}) for n in range(51)]
        for seed in range(4):
            search, tried = SurrogateSearch(space, seed=seed), dict[Point, float | None]()
            while len(tried) < 25:
                point = search.propose(tried)
                assert point is not None
                tried[point] = speed(point)
            wins += _best(tried) > statistics.median(chance)
    assert wins >= 10


def test_a_limit_that_parameters_share_is_learnt_from_failures() -> None:
    every = list(itertools.product(*map(range, SIZES)))
    space = SearchSpace(SIZES, (True,) * 4, lambda _: True, every)
    draw = random.Random(0)
    tried = {one: _speed(one) for one in draw.sample(every, 60)}
    kernel = Kernel(SIZES, (True,) * 4)
    scales = fit_failures(space, kernel, tried, kernel.unfitted)
    model = FailureModel(space, kernel, tried, scales)
    unseen = [one for one in every if one not in tried]
    success = model.success(space.places(unseen))
    fails = np.array([_speed(one) is None for one in unseen])
    assert success[~fails].min() > 0.0 and success.max() <= 1.0
    assert np.median(success[~fails]) > 2.0 * np.median(success[fails])


def test_the_slope_of_the_scales_density_is_that_of_its_differences() -> None:
    kernel = Kernel((4, 3, 5), (True, False, True))
    draw = np.random.default_rng(0)
    places = np.array(list(itertools.product(range(4), range(3), range(5))))[::3]
    values = draw.normal(size=len(places))
    here = kernel.unfitted.logarithms + 0.1
    slope = kernel.density(here, places, values)[1]
    for axis in range(len(here)):
        step = np.zeros(len(here))
        step[axis] = 1e-5
        up, down = (kernel.density(here + side * step, places, values)[0] for side in (1, -1))
        assert slope[axis] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-4)


def test_a_known_point_is_predicted_as_measured_and_a_far_one_is_uncertain() -> None:
    kernel = Kernel((9, 9), (True, True))
    known = np.array([[0, 0], [1, 0], [0, 1]])
    surrogate = Surrogate(kernel, known, np.array([1.0, 0.9, 0.7]), kernel.unfitted)
    mean, spread = surrogate.predict(np.array([[0, 0], [8, 8]]))
    assert mean[0] == pytest.approx(1.0, abs=0.2)
    assert spread[1] > 3 * spread[0]
