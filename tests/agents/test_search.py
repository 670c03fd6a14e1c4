"""The pure search: the same history, the same answer; nothing twice; ahead of chance."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from kernel_scientist.agents.models.search import Point, SearchSpace, SurrogateSearch

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
