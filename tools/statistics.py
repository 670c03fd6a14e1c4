"""Paired comparisons of times: estimates with intervals that hold for small numbers of noisy pairs.

A pair is one batch of each kernel, each in a fresh worker, in random order. Its log-ratio is
symmetric about the true value when the two kernels' noise is alike. When they are the same kernel it is
exactly so, given everything but the order, whatever the machine does meanwhile: the order was drawn. That
symmetry is all the Wilcoxon signed-rank interval needs. The number of pairs is fixed before the first one
is measured: an interval that is watched until it looks good is worthless.

The overall speed-up takes, pair by pair, the mean log-ratio over the shapes and puts the same interval
round those means. A mean of independent symmetric values is symmetric, so the level holds without the
width that a Bonferroni correction over shapes would cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from .evaluation import Interval

__all__ = [
    "geometric_mean_speedup",
    "median_interval",
    "paired_noise",
    "pairs_for",
    "quartiles",
    "signed_rank_cut",
    "speedup_interval",
]

# The exact distribution of the statistic costs n**3 operations; beyond this the normal one is as good.
_EXACT_UP_TO = 80
_SIGMA_PER_MEDIAN = 1.4826


@lru_cache(maxsize=128)
def _rank_sum_counts(n: int) -> tuple[int, ...]:
    """How many subsets of {1..n} have each sum: the null distribution of the statistic, times 2**n."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    top = 0
    for rank in range(1, n + 1):
        top += rank
        for total in range(top, rank - 1, -1):
            counts[total] += counts[total - rank]
    return tuple(counts)


@lru_cache(maxsize=256)
def signed_rank_cut(n: int, level: float) -> tuple[int, float]:
    """Which Walsh averages bound the interval for `n` pairs: the k-th smallest and k-th largest.

    Returns k and the level of that interval, which is at least `level` where n allows it. Below that
    n (8 pairs for 99 %) k is 1 and the level returned is what the whole range covers, 1 - 2**(1 - n).
    """
    if n < 1:
        raise ValueError("an interval needs at least one pair")
    alpha = 1.0 - level
    if n > _EXACT_UP_TO:
        mean, deviation = n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(1, math.floor(mean - _normal_quantile(1.0 - alpha / 2) * deviation)), level
    counts = _rank_sum_counts(n)
    below, k, total = 0, 0, 2**n
    while 2 * (below + counts[k]) <= alpha * total:
        below += counts[k]
        k += 1
    return (k, level) if k > 0 else (1, 1.0 - 2.0 ** (1 - n))


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def speedup_interval(log_ratios: Sequence[float], level: float, *, allowance: float = 0.0) -> Interval:
    """Hodges-Lehmann estimate of the ratio with its signed-rank interval.

    `log_ratios` are ln(baseline time / candidate time), one a pair. The interval is widened by `allowance`
    to both sides (0.01 is about 1 %), for what any number of pairs does not average out. Its own `level` is
    lower than asked when there are too few pairs for it. Source: Hollander, Wolfe & Chicken,
    Nonparametric Statistical Methods, 3rd ed., sections 3.2 and 3.3.
    """
    values = sorted(log_ratios)
    k, achieved = signed_rank_cut(len(values), level)
    walsh = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    middle = len(walsh) // 2
    estimate = walsh[middle] if len(walsh) % 2 else (walsh[middle - 1] + walsh[middle]) / 2
    low, high = walsh[k - 1] - allowance, walsh[-k] + allowance
    return Interval(math.exp(estimate), math.exp(low), math.exp(high), achieved)


def geometric_mean_speedup(
    log_ratios: Sequence[Sequence[float]], level: float, *, allowance: float = 0.0
) -> Interval:
    """The geometric mean over shapes; `log_ratios` holds one sequence of pairs for each shape.

    Observation i is the mean of every shape's i-th pair. Of a shape with more pairs than the fewest,
    neighbours are averaged first, until there are as many: a mean of symmetric values is symmetric.
    """
    fewest = min(map(len, log_ratios))
    folded = [_fold(one, fewest) for one in log_ratios]
    means = [math.fsum(column) / len(column) for column in zip(*folded, strict=True)]
    return speedup_interval(means, level, allowance=allowance)


def _fold(values: Sequence[float], groups: int) -> list[float]:
    """Means of `groups` stretches of `values`, of as equal a length as can be."""
    bounds = [len(values) * i // groups for i in range(groups + 1)]
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]


def paired_noise(times: Sequence[float]) -> float:
    """Standard deviation of ln(next time / time) over successive times of the same work, from its median.

    It is what one pair of batches of the same kernel differs by: a comparison of A with A that every
    measurement holds. Source of the factor: the normal distribution's median absolute deviation.
    """
    steps = sorted(abs(math.log(later / earlier)) for earlier, later in pairwise(times))
    return _SIGMA_PER_MEDIAN * quartiles(steps)[1] if steps else 0.0


def pairs_for(half_width: float, noise: float, level: float) -> int:
    """How many pairs of that noise make an interval of that half width, both in logarithms.

    The estimate has pi / 3 times the variance of a mean when noise is normal. Source: Hollander, Wolfe &
    Chicken, section 3.11.
    """
    return math.ceil(math.pi / 3 * (_normal_quantile((1.0 + level) / 2) * noise / half_width) ** 2)


def median_interval(values: Sequence[float], level: float) -> Interval:
    """The median with an interval between two order statistics, of at least `level` where that can be had.

    With too few values the whole range is given and the level that it covers, 1 - 2**(1 - n). Values count
    as independent. Source: Hollander, Wolfe & Chicken, section 3.6.
    """
    ordered = sorted(values)
    n = len(ordered)
    # Twice the chance that so few of n values fall on one side of the median.
    outside, cut = 2.0 ** (1 - n), 0
    while cut + 1 <= (n - 1) // 2:
        more = outside + math.comb(n, cut + 1) * 2.0 ** (1 - n)
        if more > 1.0 - level:
            break
        outside, cut = more, cut + 1
    return Interval(quartiles(ordered)[1], ordered[cut], ordered[n - 1 - cut], max(0.0, 1.0 - outside))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, by linear interpolation between order statistics."""
    ordered = sorted(values)

    def at(fraction: float) -> float:
        position = fraction * (len(ordered) - 1)
        low = math.floor(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (position - low)

    return at(0.25), at(0.5), at(0.75)
