"""Made-up search spaces of seven kinds, drawn from a seed: what a search meets that no kernel here has.

Nothing was measured.

The search was developed on draws of other seeds than the benchmark uses, so that these tell whether it holds
on spaces that it was not fitted to.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping

__all__ = ["KINDS", "Times", "Value", "draw_kind"]

Value = int | str
Times = dict[tuple[Value, ...], float | None]
Lists = dict[str, tuple[Value, ...]]
Place = tuple[int, ...]
Effect = Callable[[Place], float]


def _curve(draw: random.Random, size: int, height: float) -> list[float]:
    """What an axis adds to the logarithm of time: a valley, a slope that levels out, a step, or at random."""
    kind, peak = draw.choice(("valley", "valley", "slope", "step", "any")), draw.randrange(size)
    if kind == "valley":
        found = [abs(place - peak) / size for place in range(size)]
    elif kind == "slope":
        found = [math.exp(-2.0 * place / size) for place in range(size)]
    elif kind == "step":
        found = [float(place > peak) for place in range(size)]
    else:
        found = [draw.random() for _ in range(size)]
    return [height * one for one in (found if draw.random() < 0.6 else found[::-1])]


def _sum(draw: random.Random, sizes: Place, height: float) -> Effect:
    curves = [_curve(draw, size, height * draw.uniform(0.2, 1.0)) for size in sizes]
    return lambda point: sum(curve[place] for curve, place in zip(curves, point, strict=True))


def _pairs(draw: random.Random, sizes: Place, height: float, count: int) -> Effect:
    """Pairs of axes that are good only together: the nearer their shares of the list add up to one number."""
    chosen = draw.sample(list(itertools.combinations(range(len(sizes)), 2)), count)
    terms = [
        (a, b, draw.uniform(0.3, 1.7), draw.choice((1.0, -1.0)), draw.uniform(0.4, 1.0)) for a, b in chosen
    ]

    def effect(point: Place) -> float:
        total = 0.0
        for a, b, wanted, sign, share in terms:
            x, y = point[a] / max(1, sizes[a] - 1), point[b] / max(1, sizes[b] - 1)
            middle = wanted if sign > 0 else wanted - 1.0
            total += height * share * abs(x + sign * y - middle)
        return total

    return effect


def _noise(draw: random.Random, spread: float) -> Effect:
    """Every configuration its own; the same for the same point."""
    key = draw.random()
    return lambda point: random.Random(f"{key}/{point}").gauss(0.0, spread)


def _lists(sizes: Place) -> Lists:
    return {f"p{axis}": tuple(2**place for place in range(size)) for axis, size in enumerate(sizes)}


def _space(
    lists: Lists,
    effects: tuple[Effect, ...],
    *,
    rule: Callable[[Place], bool] = lambda point: True,
    fails: Callable[[Place], bool] = lambda point: False,
) -> tuple[Lists, Times]:
    times: Times = {}
    for point in itertools.product(*(range(len(values)) for values in lists.values())):
        if rule(point):
            values = tuple(known[place] for known, place in zip(lists.values(), point, strict=True))
            times[values] = None if fails(point) else math.exp(sum(effect(point) for effect in effects))
    return lists, times


def _additive(draw: random.Random) -> tuple[Lists, Times]:
    sizes = (6, 5, 4, 4, 3, 2)
    return _space(_lists(sizes), (_sum(draw, sizes, 0.6), _noise(draw, 0.01)))


def _interacting(draw: random.Random) -> tuple[Lists, Times]:
    sizes = (6, 6, 5, 4, 3, 2)
    effects = (_sum(draw, sizes, 0.2), _pairs(draw, sizes, 0.8, 5), _noise(draw, 0.02))
    return _space(_lists(sizes), effects)


def _rugged(draw: random.Random) -> tuple[Lists, Times]:
    sizes = (7, 6, 5, 4, 2)
    return _space(_lists(sizes), (_sum(draw, sizes, 0.4), _pairs(draw, sizes, 0.3, 2), _noise(draw, 0.15)))


def _failing(draw: random.Random) -> tuple[Lists, Times]:
    """More than half fail: beyond a limit of three axes together, with two values, and here and there."""
    sizes = (6, 6, 5, 4, 3)
    curves = (_sum(draw, sizes, 0.3), _noise(draw, 0.03))
    bad = {(axis, draw.randrange(1, sizes[axis] - 1)) for axis in draw.sample(range(4), 2)}
    scattered, limit = _noise(draw, 1.0), draw.choice((6, 7))

    def fails(point: Place) -> bool:
        return sum(point[:3]) > limit or bool(bad & set(enumerate(point))) or scattered(point) > 1.6

    # What gains most by larger values is best just within the limit.
    def gain(point: Place) -> float:
        return -0.25 * sum(point[:3])

    return _space(_lists(sizes), (*curves, gain), fails=fails)


def _constrained(draw: random.Random) -> tuple[Lists, Times]:
    """Of the product one in twenty is allowed, and half of the pairs of neighbours are not."""
    sizes = (7, 7, 6, 6, 4, 3)
    weights, rest = [draw.randrange(1, 4) for _ in sizes], draw.randrange(3)

    def rule(point: Place) -> bool:
        whole = sum(weight * place for weight, place in zip(weights, point, strict=True))
        return (
            whole % 3 == rest and point[0] + point[1] <= 8 and point[2] >= point[3] and point[4] <= point[1]
        )

    return _space(
        _lists(sizes), (_sum(draw, sizes, 0.5), _pairs(draw, sizes, 0.4, 3), _noise(draw, 0.03)), rule=rule
    )


def _categorical(draw: random.Random) -> tuple[Lists, Times]:
    sizes = (6, 5, 5, 4, 4)
    lists: Lists = {
        f"p{axis}": tuple(f"w{axis}{place}" for place in range(size)) for axis, size in enumerate(sizes[:3])
    }
    lists |= {f"p{axis + 3}": tuple(2**place for place in range(size)) for axis, size in enumerate(sizes[3:])}
    tables = [[draw.uniform(0.0, 0.6) for _ in range(size)] for size in sizes[:3]]
    joint = {pair: draw.uniform(0.0, 0.4) for pair in itertools.product(range(sizes[0]), range(sizes[1]))}

    def words(point: Place) -> float:
        return sum(table[place] for table, place in zip(tables, point[:3], strict=True)) + joint[point[:2]]

    curves = _sum(draw, sizes[3:], 0.4)
    return _space(lists, (words, lambda point: curves(point[3:]), _noise(draw, 0.02)))


def _needle(draw: random.Random) -> tuple[Lists, Times]:
    """Flat but for a small place, towards which little leads."""
    sizes = (7, 6, 5, 4, 3)
    needle = tuple(draw.randrange(size) for size in sizes)

    def deep(point: Place) -> float:
        away = sum(abs(a - b) for a, b in zip(point, needle, strict=True))
        return -0.5 * math.exp(-0.5 * away)

    return _space(_lists(sizes), (_sum(draw, sizes, 0.03), deep, _noise(draw, 0.015)))


KINDS: Mapping[str, Callable[[random.Random], tuple[Lists, Times]]] = {
    "additive": _additive,
    "interacting": _interacting,
    "rugged": _rugged,
    "failing": _failing,
    "constrained": _constrained,
    "categorical": _categorical,
    "needle": _needle,
}


def draw_kind(kind: str, seed: int) -> tuple[Lists, Times]:
    """The lists of values, and the time of each allowed configuration (``None``: it fails)."""
    return KINDS[kind](random.Random(f"{kind}/{seed}"))
