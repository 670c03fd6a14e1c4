"""How far a kernel is from the speed of light, where most is left, and when nothing worth while is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_scientist.tools.evaluation import ShapeTiming

from ..config import SearchConfig
from ..population import Member, Population

__all__ = ["focus_of", "light_share", "no_headroom"]

_SHOWN = 4


def light_share(timings: Sequence[ShapeTiming]) -> float | None:
    """The speed-of-light time over the measured one, geometric mean over shapes; ``None`` where any lacks a
    bound."""
    shares = [one.bound_us / one.time_us for one in timings if one.bound_us and one.time_us > 0]
    if not shares or len(shares) < len(timings):
        return None
    return math.exp(sum(math.log(share) for share in shares) / len(shares))


def no_headroom(population: Population, settings: SearchConfig) -> str | None:
    """Why there is nothing left worth the effort, as a stop reason; ``None`` while there is."""
    best = population.best
    share = None if best.evaluation is None else light_share(best.evaluation.timings)
    if share is None or share < settings.enough_light:
        return None
    return (
        f"candidate {best.id} runs at {100 * share:.0f} % of the speed of light "
        f"(search.enough_light {settings.enough_light:g}): little is left to gain"
    )


def focus_of(base: Member, settings: SearchConfig) -> str:
    """Where effort should go on this Base: shapes by what is left on them; empty without bounds."""
    timings = () if base.evaluation is None else base.evaluation.timings
    shares = [(one.bound_us / one.time_us, one) for one in timings if one.bound_us and one.time_us > 0]
    if not shares:
        return ""
    shares.sort(key=lambda item: item[0])
    done = [one for share, one in shares if share >= settings.enough_light]
    left = [(share, one) for share, one in shares if share < settings.enough_light]
    parts = [
        f"{_shape(one)} at {100 * share:.0f} % (bound by {one.bound_by})" for share, one in left[:_SHOWN]
    ]
    more = f" and {len(left) - _SHOWN} more shapes" if len(left) > _SHOWN else ""
    text = f"Share of the speed of light, most left first: {'; '.join(parts)}{more}." if parts else ""
    if done:
        text += f" Not worth more effort, near the bound: {'; '.join(map(_shape, done[:_SHOWN]))}."
    return text.strip()


def _shape(timing: ShapeTiming) -> str:
    return " ".join(f"{name}={extent}" for name, extent in timing.shape.items())
