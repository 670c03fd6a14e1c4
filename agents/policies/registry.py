"""From a policy's name to the policy. A new one is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from kernel_scientist.sandbox.errors import UsageError

from .base import Policy
from .greedy import GreedyPolicy
from .islands import IslandsPolicy
from .map_elites import MapElitesPolicy
from .paper import PaperPolicy

__all__ = ["POLICIES", "make_policy"]

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "paper": PaperPolicy,
    "greedy": GreedyPolicy,
    "map-elites": MapElitesPolicy,
    "islands": IslandsPolicy,
}


def make_policy(name: str) -> Policy:
    """The policy called `name`. Raises `UsageError` with the names there are."""
    if name in POLICIES:
        return POLICIES[name]()
    close = get_close_matches(name.casefold().replace("_", "-"), list(POLICIES), n=1, cutoff=0.6)
    hint = f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(POLICIES)}."
    raise UsageError(f"There is no search policy '{name}'; {hint}")
