"""How hard the judge looks: pairs, budgets and limits of the two tiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["JudgeSettings", "Tier", "TierSettings"]

Tier = Literal["screen", "confirm"]


@dataclass(frozen=True, slots=True)
class TierSettings:
    """`pairs` are measured of every shape, fewer when the pilots say that they take more than the budget.

    How many is settled from the pilots before the first pair, and never below `least_pairs`. `budget_s`
    is wall time a shape, pilot included. Of each batch `checked_runs` outputs are compared in full with
    the reference, out of those that differ in any bit from an output already found right.
    """

    pairs: int
    least_pairs: int
    budget_s: float
    checked_runs: int


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Defaults fit the bundled problems on two cores.

    `level` is the confidence level of every interval. A batch lasts about `batch_s`, within
    `memory_bytes` for the buffers of all its runs, which may take `inputs_budget_s` to draw. A candidate's
    batch may take `timeout_factor` times as long as the baseline's, and at least `timeout_s`; a batch of a
    baseline that was not timed yet `baseline_timeout_s`.
    A candidate slower than `slow_factor` times the baseline is timed with the fewest pairs. A time
    below `plausible_share` of the speed-of-light bound is refused as implausible. Batches whose
    interquartile range exceeds `noisy_spread` of their median earn a note.
    """

    level: float = 0.99
    screen: TierSettings = field(default_factory=lambda: TierSettings(8, 3, 1.2, 3))
    confirm: TierSettings = field(default_factory=lambda: TierSettings(30, 12, 18.0, 1_000_000))
    batch_s: float = 0.020
    memory_bytes: int = 256 << 20
    max_runs: int = 512
    inputs_budget_s: float = 0.5
    timeout_s: float = 1.0
    timeout_factor: float = 50.0
    baseline_timeout_s: float = 20.0
    slow_factor: float = 10.0
    plausible_share: float = 0.5
    noisy_spread: float = 0.1
    held_out_shapes: int = 2
    held_out_elements: int = 1 << 16

    def tier(self, name: Tier) -> TierSettings:
        return self.screen if name == "screen" else self.confirm
