"""Search policies behind one interface, and what every search shares: duplicates, effort, portfolios.

Custom policies are passed to a `Session`: any object with a `name` and `choose(situation)`.
"""

from __future__ import annotations

from .base import Parents, Policy, Situation
from .registry import POLICIES, make_policy
from .strategy import STRATEGIES, Strategy

__all__ = ["POLICIES", "STRATEGIES", "Parents", "Policy", "Situation", "Strategy", "make_policy"]
