"""How hard the judge looks: pairs, budgets and limits of the two tiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["JudgeSettings", "Tier", "TierSettings"]

Tier = Literal["screen", "confirm"]


@dataclass(frozen=True, slots=True)
class TierSettings:
    """How many pairs of batches are measured of a shape; settled before the first of them.

    `pairs` where the machine is quiet. Where the noise met in the warm-up asks for more, so that an
    interval reaches `resolution` to both sides, up to `most_pairs` (at least `pairs`); fewer when that takes
    longer than `budget_s`, wall time a shape with pilot and warm-up; but never below `least_pairs`. The
    warm-up compares `warm_up` batches with as many before them. Of each batch `checked_runs` outputs are
    compared in full with the reference, out of those that differ in any bit from outputs found right.
    """

    pairs: int
    least_pairs: int
    budget_s: float
    checked_runs: int
    most_pairs: int = 0
    resolution: float = 0.01
    warm_up: int = 1


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Defaults fit the bundled problems on two cores.

    `level` is the confidence level of every interval. Each is widened by `allowance` to both sides: where
    code and data happen to lie can make that much difference, so that less is never claimed.
    A batch lasts about `batch_s`, within `memory_bytes` for the buffers of all its runs, which may take
    `inputs_budget_s` to draw. One run may have `scratch_bytes` of scratch.
    A candidate's batch may take `timeout_factor` times as long as the baseline's, and at least `timeout_s`;
    a batch of a baseline that was not timed yet `baseline_timeout_s`.
    `held_out_shapes` are drawn for each evaluation: one beside a benchmark shape of at most
    `neighbour_elements`, the others from the domain with at most `held_out_elements`.
    A candidate slower than `slow_factor` times the baseline is timed with the fewest pairs. A time
    below `plausible_share` of the speed-of-light bound is refused as implausible. Batches of one kernel
    that differ by more than `noisy_spread` are called noisy, and a machine on which others have more than
    `busy_share` of a core, or of the timed one's time, busy.
    """

    level: float = 0.99
    allowance: float = 0.002
    screen: TierSettings = field(default_factory=lambda: TierSettings(8, 3, 1.1, 3, 16, 0.01, 2))
    confirm: TierSettings = field(
        default_factory=lambda: TierSettings(30, 12, 17.0, 1_000_000, 200, 0.004, 4)
    )
    batch_s: float = 0.020
    memory_bytes: int = 256 << 20
    scratch_bytes: int = 1 << 30
    max_runs: int = 512
    inputs_budget_s: float = 0.5
    timeout_s: float = 1.0
    timeout_factor: float = 50.0
    baseline_timeout_s: float = 20.0
    slow_factor: float = 10.0
    plausible_share: float = 0.5
    noisy_spread: float = 0.05
    busy_share: float = 0.1
    held_out_shapes: int = 3
    held_out_elements: int = 1 << 15
    neighbour_elements: int = 1 << 20

    def tier(self, name: Tier) -> TierSettings:
        return self.screen if name == "screen" else self.confirm
