"""Intervals for speed-ups: exact where it matters, and honest about small numbers of pairs."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from kernel_scientist.tools.statistics import (
    geometric_mean_speedup,
    paired_noise,
    pairs_for,
    quartiles,
    signed_rank_cut,
    speedup_interval,
)


def brute_force_level(n: int, k: int) -> float:
    """Coverage of (k-th smallest, k-th largest Walsh average), by going through all sign patterns."""
    sums = [sum(r for r, s in zip(range(1, n + 1), signs, strict=True) if s) for signs in _signs(n)]
    return 1.0 - 2.0 * sum(total <= k - 1 for total in sums) / len(sums)


def _signs(n: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=n))


@pytest.mark.parametrize("n", range(8, 13))
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_cut_is_the_largest_that_still_holds_the_level(n: int, level: float) -> None:
    k, achieved = signed_rank_cut(n, level)
    assert achieved == level
    assert brute_force_level(n, k) >= level
    assert brute_force_level(n, k + 1) < level


@pytest.mark.parametrize("n", [1, 3, 7])
def test_too_few_pairs_give_the_level_that_their_range_covers(n: int) -> None:
    k, achieved = signed_rank_cut(n, 0.99)
    assert k == 1
    assert achieved == pytest.approx(brute_force_level(n, 1))
    assert achieved < 0.99


def test_the_cut_agrees_with_a_published_table() -> None:
    # Critical values of the statistic, two-sided 5 %: 8 for n = 10, 52 for n = 20, 137 for n = 30.
    assert [signed_rank_cut(n, 0.95)[0] for n in (10, 20, 30)] == [9, 53, 138]


def test_the_normal_approximation_takes_over_without_a_jump() -> None:
    exact, _ = signed_rank_cut(80, 0.99)
    approximate, _ = signed_rank_cut(81, 0.99)
    assert 0 < approximate - exact < 60


def test_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        signed_rank_cut(0, 0.99)


def test_the_estimate_is_the_median_of_walsh_averages() -> None:
    ratios = [1.0, 2.0, 4.0]
    interval = speedup_interval([math.log(value) for value in ratios], 0.99)
    assert interval.value == pytest.approx(2.0)
    assert (interval.low, interval.high) == (pytest.approx(1.0), pytest.approx(4.0))


def test_one_wild_pair_does_not_move_the_estimate() -> None:
    quiet = [math.log(1.5) + 0.001 * i for i in range(-10, 11)]
    wild = [*quiet[:-1], math.log(50.0)]
    assert speedup_interval(wild, 0.99).value == pytest.approx(speedup_interval(quiet, 0.99).value, rel=2e-3)


def test_a_difference_covers_the_truth_as_often_as_it_says() -> None:
    draw = random.Random(7)
    missed = 0
    for _ in range(400):
        pairs = [0.1 + draw.gauss(0.0, 0.05) * draw.choice((1.0, 1.0, 5.0)) for _ in range(12)]
        interval = speedup_interval(pairs, 0.9)
        missed += not interval.low <= math.exp(0.1) <= interval.high
    # 40 expected at 90 %; 64 is four standard deviations more, 16 as many fewer.
    assert 16 <= missed <= 64


def test_the_overall_speedup_is_the_geometric_mean_over_shapes() -> None:
    slow, fast = [math.log(1.0)] * 9, [math.log(4.0)] * 9
    interval = geometric_mean_speedup([slow, fast], 0.99)
    assert interval.value == pytest.approx(2.0)
    assert interval.low == pytest.approx(interval.high)


def test_noise_of_several_shapes_averages_out() -> None:
    draw = random.Random(3)
    shapes = [[draw.gauss(0.0, 0.1) for _ in range(30)] for _ in range(4)]
    overall = geometric_mean_speedup(shapes, 0.99)
    single = speedup_interval(shapes[0], 0.99)
    assert math.log(overall.high / overall.low) < 0.8 * math.log(single.high / single.low)


def test_a_shape_with_fewer_pairs_limits_the_overall_level() -> None:
    assert geometric_mean_speedup([[0.1] * 30, [0.2] * 3], 0.99).level == pytest.approx(0.75)


def test_a_shape_with_more_pairs_than_another_loses_none() -> None:
    many = geometric_mean_speedup([[0.0, 0.4] * 10, [0.2] * 10], 0.99)
    assert many.value == pytest.approx(math.exp(0.2))
    assert many.level == 0.99
    uneven = geometric_mean_speedup([[0.1] * 23, [0.3] * 9], 0.99)
    assert uneven.low == pytest.approx(math.exp(0.2))


def test_an_allowance_widens_the_interval_to_both_sides_and_moves_nothing() -> None:
    pairs = [0.001 * i for i in range(-10, 11)]
    plain, wide = speedup_interval(pairs, 0.99), speedup_interval(pairs, 0.99, allowance=0.01)
    assert wide.value == plain.value
    assert math.log(wide.low) == pytest.approx(math.log(plain.low) - 0.01)
    assert math.log(wide.high) == pytest.approx(math.log(plain.high) + 0.01)


def test_the_noise_of_pairs_is_found_beside_drift_and_outliers() -> None:
    draw = random.Random(5)
    times = [math.exp(draw.gauss(0.0, 0.02) + 0.001 * i) for i in range(400)]
    times[50] *= 10.0
    # Two batches differ by the root of two more than one does from the truth.
    assert paired_noise(times) == pytest.approx(0.02 * math.sqrt(2.0), rel=0.2)
    assert paired_noise([1.0]) == 0.0


def test_as_many_pairs_as_are_asked_for_reach_the_width() -> None:
    draw = random.Random(9)
    count = pairs_for(0.01, 0.04, 0.99)
    widths = []
    for _ in range(20):
        interval = speedup_interval([draw.gauss(0.0, 0.04) for _ in range(count)], 0.99)
        widths.append(math.log(interval.high / interval.low) / 2)
    assert sum(widths) / len(widths) == pytest.approx(0.01, rel=0.15)


def test_the_same_kernel_is_told_from_itself_no_more_often_than_the_level_allows() -> None:
    # Order drawn at random: any noise at all, here a drifting and bursting one, is symmetric given the order.
    draw = random.Random(4)
    false = 0
    for _ in range(300):
        values = []
        for i in range(30):
            first, second = (0.01 * i * draw.random() + 0.2 * (draw.random() < 0.1) for _ in range(2))
            values.append(draw.choice((1.0, -1.0)) * (second - first + 0.03))
        interval = speedup_interval(values, 0.99)
        false += not interval.low <= 1.0 <= interval.high
    # 3 are expected; more than 9 have a chance below one in a thousand.
    assert false <= 9


def test_quartiles_interpolate() -> None:
    assert quartiles([4.0, 1.0, 2.0, 3.0]) == (1.75, 2.5, 3.25)
    assert quartiles([5.0]) == (5.0, 5.0, 5.0)
