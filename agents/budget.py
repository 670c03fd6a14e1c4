"""What a session may use and has used: time, evaluations, tokens, money."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

from .config import Limits, Price
from .events import Totals, Usage
from .interrupts import LimitHit

__all__ = ["Budget", "cost_of"]


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """US dollars for one call; ``None`` when the price is not known."""
    if price is None:
        return None
    cached_price = price.input if price.cached is None else price.cached
    cached = min(usage.cached_tokens, usage.prompt_tokens)
    fresh = usage.prompt_tokens - cached
    return (fresh * price.input + cached * cached_price + usage.completion_tokens * price.output) / 1e6


@final
class Budget:
    """Counts every call, failed ones included, against the limits; `spent` was used before."""

    def __init__(
        self, limits: Limits, *, spent: Totals | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        spent = spent or Totals()
        self.limits = limits
        self._clock = clock
        self._started = clock() - spent.seconds
        self._calls = spent.model_calls
        self._prompt = spent.prompt_tokens
        self._completion = spent.completion_tokens
        self._cost = spent.cost_usd
        self._evaluations = spent.evaluations
        self._candidates = spent.candidates
        self._accepted = spent.accepted

    def charge_call(self, usage: Usage, cost_usd: float | None) -> None:
        self._calls += 1
        self._prompt += usage.prompt_tokens
        self._completion += usage.completion_tokens
        self._cost = None if self._cost is None or cost_usd is None else self._cost + cost_usd

    def charge_candidate(self) -> None:
        self._candidates += 1

    def charge_evaluation(self, *, accepted: bool) -> None:
        self._evaluations += 1
        self._accepted += accepted

    @property
    def totals(self) -> Totals:
        return Totals(
            model_calls=self._calls,
            prompt_tokens=self._prompt,
            completion_tokens=self._completion,
            cost_usd=self._cost,
            evaluations=self._evaluations,
            candidates=self._candidates,
            accepted=self._accepted,
            seconds=self._clock() - self._started,
        )

    @property
    def seconds_left(self) -> float:
        """Until the time limit; infinite where there is none."""
        limit = self.limits.max_time_s
        return float("inf") if limit is None else max(0.0, limit - self.totals.seconds)

    def check(self) -> None:
        """Raise `LimitHit` when time, tokens or money are used up."""
        limits, totals = self.limits, self.totals
        self._compare("max_time_s", totals.seconds, limits.max_time_s, "{used:.0f} s of {maximum:g} s")
        tokens = totals.prompt_tokens + totals.completion_tokens
        self._compare("max_tokens", tokens, limits.max_tokens, "{used:.0f} of {maximum:.0f} tokens")
        if totals.cost_usd is not None:
            self._compare(
                "max_cost_usd", totals.cost_usd, limits.max_cost_usd, "${used:.4f} of ${maximum:.4f}"
            )

    def check_evaluation(self) -> None:
        """Raise `LimitHit` when another evaluation is not allowed."""
        self.check()
        maximum = self.limits.max_evaluations
        self._compare(
            "max_evaluations", self._evaluations, maximum, "{used:.0f} of {maximum:.0f} evaluations"
        )

    def _compare(self, limit: str, used: float, maximum: float | None, words: str) -> None:
        if maximum is not None and used >= maximum:
            spent = words.format(used=used, maximum=maximum)
            raise LimitHit(limit, used, maximum, f"the limit {limit} is reached: {spent} are used")
