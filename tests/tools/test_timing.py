"""How batches are sized, paired, timed and checked, on a scripted device whose clock the test holds."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.sandbox.compilation import CodeObject, CompiledKernel, CompileRequest
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, Finished, KernelLaunch, Region, TimedOut
from kernel_scientist.sandbox.load import LoadSample, Strain
from kernel_scientist.sandbox.workspace import Workspace
from kernel_scientist.tools.batches import Batch, Fault, Patience
from kernel_scientist.tools.binding import bind
from kernel_scientist.tools.builds import Build
from kernel_scientist.tools.conclusions import busy, method, noise
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.roofline import BandwidthPoint, Roofline, speed_of_light
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.statistics import speedup_interval
from kernel_scientist.tools.timing import Measurement, ShapeTimer, number_of_pairs
from kernel_scientist.tools.warm_up import WarmUp, warm_up

SHAPE = {"n": 1000}
PATIENCE = Patience(1.0, 0.0)
WARM = WarmUp(0.0, 0.02, True)
Compute = Callable[[int, list[np.ndarray]], np.ndarray | None]


def honest(run: int, inputs: list[np.ndarray]) -> np.ndarray:
    x = inputs[run].astype(np.float64)
    return (2 * x + np.concatenate(([0.0], x[:-1]))).astype(np.float32)


class ScriptedDevice:
    """Computes with NumPy in this process; build number i takes ``per_run[i]`` seconds by its own clock."""

    notes = ()
    caches = "cold caches"
    reverses = True

    def __init__(self, per_run: Sequence[Callable[[], float]], compute: Compute = honest) -> None:
        self.per_run = per_run
        self.compute = compute
        self.batches: list[tuple[str, int]] = []
        self.started_poisoned: list[bool] = []
        self.sizes: list[int] = []

    def compile(self, request: CompileRequest) -> CodeObject:
        raise AssertionError("nothing is compiled here")

    report = compile

    def workspace(self, regions: Sequence[Region], runs: int) -> Workspace:
        workspace = Workspace(regions, runs)
        self.sizes.append(sum(region.nbytes for region in regions) * runs)
        return workspace

    def run(
        self,
        code: CodeObject,
        workspace: Workspace,
        launches: Sequence[KernelLaunch | Fill],
        *,
        count: int,
        timeout_s: float,
        reverse_fibers: bool = False,
    ) -> BatchOutcome:
        self.batches.append((code.key, count))
        seconds = self.per_run[int(code.key)]() * count
        if seconds > timeout_s:
            return TimedOut(timeout_s)
        inputs = [np.frombuffer(workspace.view(run, 0), np.float32) for run in range(count)]
        outputs = [np.frombuffer(workspace.view(run, 1), np.uint8) for run in range(count)]
        self.started_poisoned.append(all(bool((output == 0xFF).all()) for output in outputs))
        for run, output in enumerate(outputs):
            value = self.compute(run, inputs)
            if value is not None:
                output[:] = value.view(np.uint8)
        return Finished(seconds)

    def exclusive(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def load(self) -> None:
        return None

    def roofline(self, *, again: bool = False) -> None:
        return None


@pytest.fixture
def timer(filter_problem: Problem) -> Callable[..., Measurement | Fault]:
    kernel = Kernel.load(filter_problem.default_kernel)
    plan = bind(kernel, filter_problem, SHAPE)

    def build(index: int) -> Build:
        compiled = tuple(CompiledKernel(entry, entry.kernel, 0) for entry in plan.entries)
        return Build(
            plan, CodeObject("cpu", Path("/nowhere"), str(index), compiled, "", "script", 0.0, False)
        )

    def measure(device: ScriptedDevice, settings: JudgeSettings, tier: str = "screen") -> Measurement | Fault:
        rng = np.random.default_rng(5)
        builds = [build(index) for index in range(len(device.per_run))]
        timer = ShapeTimer(device, filter_problem, settings, rng)
        pilot = timer.pilot(SHAPE, builds, PATIENCE)
        if isinstance(pilot, Fault):
            return pilot
        limits = settings.tier(tier)
        return timer.measure(pilot, builds, tier=limits, left_s=limits.budget_s, patience=PATIENCE)

    return measure


def settings(**changes: object) -> JudgeSettings:
    base = JudgeSettings(screen=TierSettings(8, 3, 1e9, 3), confirm=TierSettings(8, 3, 1e9, 1_000_000))
    return replace(base, **changes)


def constant(seconds: float) -> Callable[[], float]:
    return lambda: seconds


def test_a_batch_takes_about_the_time_asked_for(timer: Callable[..., Measurement | Fault]) -> None:
    measured = timer(ScriptedDevice([constant(0.001), constant(0.001)]), settings(batch_s=0.020))
    assert isinstance(measured, Measurement)
    assert measured.runs == (20, 20)


def test_the_time_of_a_run_is_the_batch_over_its_runs_with_nothing_subtracted(
    timer: Callable[..., Measurement | Fault],
) -> None:
    device = ScriptedDevice([constant(0.004)])
    measured = timer(device, settings())
    assert isinstance(measured, Measurement)
    assert measured.times_s == ((pytest.approx(0.004),) * 8,)


def test_memory_bounds_the_runs_of_a_batch(timer: Callable[..., Measurement | Fault]) -> None:
    device = ScriptedDevice([constant(1e-5)])
    measured = timer(device, settings(memory_bytes=50_000))
    assert isinstance(measured, Measurement)
    assert measured.runs == (6,)
    assert max(device.sizes) <= 50_000


def test_pairs_are_complete_and_their_order_varies(timer: Callable[..., Measurement | Fault]) -> None:
    device = ScriptedDevice([constant(0.002), constant(0.002)])
    measured = timer(device, settings())
    assert isinstance(measured, Measurement)
    assert [len(times) for times in measured.times_s] == [8, 8]
    order = [key for key, _ in device.batches[-16:]]
    pairs = {tuple(order[i : i + 2]) for i in range(0, 16, 2)}
    assert pairs == {("0", "1"), ("1", "0")}


def test_every_batch_starts_on_poisoned_outputs(timer: Callable[..., Measurement | Fault]) -> None:
    device = ScriptedDevice([constant(0.002), constant(0.003)])
    timer(device, settings())
    assert len(device.started_poisoned) >= 18
    assert all(device.started_poisoned)


def test_a_short_budget_means_fewer_pairs_decided_beforehand(
    timer: Callable[..., Measurement | Fault],
) -> None:
    tier = TierSettings(30, 3, 0.5, 3)
    measured = timer(ScriptedDevice([constant(0.050), constant(0.050)]), settings(screen=tier))
    assert isinstance(measured, Measurement)
    # A pair is at least two runs of 50 ms, so that no more than five fit.
    assert 3 <= len(measured.times_s[0]) <= 5


def test_a_noisy_machine_gets_more_pairs_within_the_budget() -> None:
    tier = TierSettings(30, 12, 1e9, 3, 200, 0.01)
    pairs = [number_of_pairs(tier, 0.99, noise, 0.1, 15.0) for noise in (0.0, 0.01, 0.03, 0.04, 0.5)]
    assert pairs[:2] == [30, 30]
    assert 60 < pairs[2] < 65
    assert 108 < pairs[3] < 115
    assert pairs[4] == 150
    assert number_of_pairs(tier, 0.99, 0.5, 0.1, 1000.0) == 200
    assert number_of_pairs(tier, 0.99, 0.5, 10.0, 15.0) == 12


def test_the_time_of_a_run_is_the_workers_own_where_the_device_tells_it() -> None:
    assert Batch(10, 0.050, 0.020).run_s == pytest.approx(0.002)
    assert Batch(10, 0.050, None).run_s == pytest.approx(0.005)


def test_a_measurement_says_how_long_workers_waited_for_their_core() -> None:
    batches = (Batch(1, 0.04, 0.03), Batch(1, 0.04, 0.01))
    assert Measurement((batches,), WARM).waited == pytest.approx(0.5)
    assert Measurement(((*batches, Batch(1, 0.04, None)),), WARM).waited == pytest.approx(0.5)
    assert Measurement(((Batch(1, 0.04, None),),), WARM).waited is None


def test_a_warm_up_goes_on_until_times_are_steady() -> None:
    times = iter([0.009, 0.007, 0.005, 0.003, 0.002, 0.002, 0.002, 0.002, 0.002])
    tier = TierSettings(8, 3, 1e9, 3, warm_up=2)
    warm = warm_up(lambda: Batch(1, next(times), None), tier)
    assert isinstance(warm, WarmUp)
    assert warm.settled
    assert next(times) == 0.002
    assert len(list(times)) == 0


def test_a_warm_up_that_never_settles_ends_and_says_so() -> None:
    clock = itertools.count(1)
    warm = warm_up(lambda: Batch(1, 1.5 ** next(clock), None), TierSettings(8, 3, 1e9, 3, warm_up=2))
    assert isinstance(warm, WarmUp)
    assert not warm.settled
    assert next(clock) == 13
    assert "not steady" in noise([Measurement(((Batch(1, 1.0, None),),), warm)], 0.05)[1]


def test_only_the_baseline_is_warmed_up(timer: Callable[..., Measurement | Fault]) -> None:
    device = ScriptedDevice([constant(0.002), constant(0.002)])
    timer(device, settings(screen=TierSettings(8, 3, 1e9, 3, warm_up=3)))
    assert [key for key, _ in device.batches[:-16]] == ["0", "0", "1", "1", *["1"] * 6]


def test_the_noise_of_the_machine_is_that_of_one_kernel_with_itself(
    timer: Callable[..., Measurement | Fault],
) -> None:
    draw = np.random.default_rng(2)

    def noisy() -> float:
        return 0.002 * float(np.exp(draw.normal(0.0, 0.03)))

    tier = TierSettings(100, 3, 1e9, 0)
    measured = timer(ScriptedDevice([constant(0.004), noisy]), settings(screen=tier))
    assert isinstance(measured, Measurement)
    assert 0.03 < measured.noise < 0.06
    assert "(A/A)" in noise([measured], 1.0)[0]
    assert "noisy" in noise([measured], 0.01)[0]


def test_how_was_timed_is_said_with_estimator_and_caches(timer: Callable[..., Measurement | Fault]) -> None:
    measured = timer(ScriptedDevice([constant(0.002), constant(0.002)]), settings())
    assert isinstance(measured, Measurement)
    said = method([measured], "cold caches")
    assert all(word in said for word in ("wall time", "Hodges-Lehmann", "fixed before", "cold"))


def test_a_busy_machine_is_told_and_a_quiet_one_is_not() -> None:
    before = LoadSample(100.0, 2, 50.0, 1.0, 20.0, 3.5)
    after = LoadSample(110.0, 2, 66.0, 3.0, 29.0, 3.5)
    strain = before.until(after)
    assert (strain.others, strain.stolen) == (pytest.approx(0.7), pytest.approx(0.2))
    (note,) = busy(before, strain, 0.3, 0.1)
    assert all(text in note for text in ("0.7 of 2 cores", "0.2 of 2", "30%", "load average 3.5"))
    assert busy(before, Strain(2, 0.02, 0.0), 0.01, 0.1) == []
    assert busy(None, None, None, 0.1) == []


def test_a_kernel_much_slower_than_the_baseline_is_cut_short(
    timer: Callable[..., Measurement | Fault],
) -> None:
    measured = timer(ScriptedDevice([constant(0.0201), constant(0.001)]), settings())
    assert isinstance(measured, Measurement)
    assert measured.runs[0] == 1
    assert len(measured.times_s[0]) == 3


def test_a_batch_that_takes_too_long_is_a_timeout(timer: Callable[..., Measurement | Fault]) -> None:
    fault = timer(ScriptedDevice([constant(5.0), constant(0.001)]), settings())
    assert isinstance(fault, Fault)
    assert (fault.verdict, fault.contender) == (Verdict.TIMEOUT, 0)


def test_the_fault_of_a_baseline_is_told_apart(timer: Callable[..., Measurement | Fault]) -> None:
    fault = timer(ScriptedDevice([constant(0.001), constant(5.0)]), settings())
    assert isinstance(fault, Fault)
    assert fault.contender == 1


@pytest.mark.parametrize("tier", ["screen", "confirm"])
def test_a_kernel_that_works_one_launch_in_four_is_found(
    timer: Callable[..., Measurement | Fault], tier: str
) -> None:
    def copies(run: int, inputs: list[np.ndarray]) -> np.ndarray:
        # Right in the pilot, which is shorter: only what is timed is skipped.
        return honest(run // 4 * 4 if len(inputs) > 4 else run, inputs)

    fault = timer(ScriptedDevice([constant(0.001), constant(0.001)], copies), settings(), tier)
    assert isinstance(fault, Fault)
    assert fault.verdict is Verdict.WRONG_RESULT


def test_one_output_never_written_is_found_in_any_run(timer: Callable[..., Measurement | Fault]) -> None:
    def lazy(run: int, inputs: list[np.ndarray]) -> np.ndarray | None:
        return None if run == 17 else honest(run, inputs)

    # No output is compared in full, so that coverage alone must tell.
    fault = timer(ScriptedDevice([constant(0.001)], lazy), settings(screen=TierSettings(8, 3, 1e9, 0)))
    assert isinstance(fault, Fault)
    assert "never written" in fault.message


def test_noise_that_is_the_same_for_both_makes_no_claim(timer: Callable[..., Measurement | Fault]) -> None:
    draw = np.random.default_rng(11)

    def noisy() -> float:
        return 0.002 * float(np.exp(draw.normal(0.0, 0.05)))

    tier = TierSettings(30, 3, 1e9, 0)
    measured = timer(ScriptedDevice([noisy, noisy]), settings(screen=tier))
    assert isinstance(measured, Measurement)
    interval = speedup_interval(measured.log_ratios(), 0.99)
    assert interval.low < 1.0 < interval.high


def test_the_bound_is_the_larger_of_memory_and_arithmetic(filter_problem: Problem) -> None:
    slow_memory = Roofline({"float32": 1e12}, (BandwidthPoint(0, 1e9),), "test")
    bound = speed_of_light(filter_problem, SHAPE, slow_memory, runs=1)
    assert (bound.by, bound.time_us) == ("memory", pytest.approx(8.0))
    slow_arithmetic = Roofline({"float32": 1e8}, (BandwidthPoint(0, 1e12),), "test")
    bound = speed_of_light(filter_problem, SHAPE, slow_arithmetic, runs=1)
    assert (bound.by, bound.time_us) == ("arithmetic", pytest.approx(30.0))


def test_a_small_footprint_gets_the_bandwidth_of_the_cache(filter_problem: Problem) -> None:
    roofline = Roofline({}, (BandwidthPoint(0, 50e9), BandwidthPoint(1 << 20, 10e9)), "test")
    few, many = (speed_of_light(filter_problem, SHAPE, roofline, runs=runs) for runs in (1, 1000))
    assert many.time_us == pytest.approx(5 * few.time_us)
