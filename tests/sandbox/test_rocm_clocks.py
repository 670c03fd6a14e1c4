"""Which times of events can be true beside the processor's clock."""

from __future__ import annotations

import pytest

from kernel_scientist.sandbox.rocm.clocks import Times, contradiction

EMPTY = (0.20, 0.21, 0.22)


def judged(
    event: list[float], wall: list[float], waited: list[float] | None = None, **more: float
) -> str | None:
    times = Times(tuple(event), tuple(wall), tuple(waited or [0.0] * len(event)), EMPTY)
    return contradiction(times, steps=int(more.get("steps", 1)), caller_s=more.get("caller_s", 10.0))


@pytest.mark.parametrize(
    ("event", "wall", "waited"),
    [
        ([1.0, 1.0], [1.25, 1.3], [0.0, 0.0]),
        # One run of many is enough to show that the host, not the clock, was late.
        ([1.0, 1.0, 1.0], [9.0, 1.3, 30.0], [0.0, 0.0, 0.0]),
        ([1.0], [6.0], [4.9]),
        ([0.005], [0.6], [0.0]),
    ],
)
def test_an_honest_clock_is_believed(event: list[float], wall: list[float], waited: list[float]) -> None:
    assert judged(event, wall, waited) is None


@pytest.mark.parametrize(
    ("event", "wall", "said"),
    [
        ([1.0, 1.0], [5.0, 5.0], "the events of run 0 say 1.000 ms, but it took 5.000 ms"),
        ([1.0, 0.0], [1.2, 1.2], "the events of run 1 say that it took 0 ms"),
        ([float("inf")], [1.2], "say that it took inf ms"),
        ([2.0], [1.2], "the events of run 0 say 2.000 ms, but it was over after 1.200 ms"),
    ],
)
def test_a_false_clock_is_refused(event: list[float], wall: list[float], said: str) -> None:
    answer = judged(event, wall)
    assert answer is not None
    assert said in answer


def test_all_runs_together_cannot_take_longer_than_the_caller_waited() -> None:
    assert judged([1.0] * 100, [1.2] * 100, caller_s=0.1) is None
    answer = judged([1.0] * 100, [1.2] * 100, caller_s=0.05)
    assert answer is not None
    assert "0.100 s, but they were over after 0.050 s" in answer


def test_a_plan_of_many_launches_may_keep_the_host_longer() -> None:
    assert judged([1.0], [3.0]) is not None
    assert judged([1.0], [3.0], steps=100) is None
