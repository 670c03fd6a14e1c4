"""The judge on a GPU: verdicts, times, locks, devices side by side; `machine` may be a real one."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from kernel_scientist.sandbox.errors import SandboxError, UnusableEnvironment
from kernel_scientist.sandbox.files import FileLock, cache_home
from kernel_scientist.sandbox.rocm import devices
from kernel_scientist.tools.evaluation import Evaluation, Verdict
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.peaks import GPU_PEAKS, device_roofline, disagreements, gpu_roofline, peaks_of
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets import resolve_target
from kernel_scientist.tools.targets.mi300 import Mi300Target

from ..sandbox.fakehip.machine import FakeRocm, add_smi
from .conftest import HONEST, write_problem

# Sums in a loop long enough that a false clock shows.
LONG = HONEST.replace(
    "__syncthreads();", "__syncthreads();\n  float z = 0; for (int k = 0; k < 300; k++) z += sinf(z + k);"
)
LONG = LONG.replace("2.0f * tile", "(z > 1e9f ? z : 2.0f) * tile")


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    problem = write_problem(tmp_path_factory.mktemp("problem") / "filter", shapes="mi300")
    description = problem.folder / "problem.toml"
    description.write_text(description.read_text().replace("[{ n = 8192 }, { n = 20001 }]", "[{ n = 8192 }]"))
    return Problem.load(problem.folder)


@pytest.fixture(scope="module")
def few() -> JudgeSettings:
    tier = TierSettings(1, 1, 0.2, 3, warm_up=1)
    return JudgeSettings(
        screen=tier,
        confirm=replace(tier, checked_runs=1_000_000),
        batch_s=0.002,
        max_runs=4,
        held_out_shapes=1,
    )


@pytest.fixture
def machine(request: pytest.FixtureRequest, real_device: bool) -> None:
    """The machine's own device with ``--real-device``, else one that runs kernels on the CPU."""
    if not real_device:
        request.getfixturevalue("rocm")


@pytest.fixture
def judge(machine: None, problem: Problem, few: JudgeSettings) -> Judge:
    return Judge(problem, resolve_target("mi300"), Kernel.load(problem.default_kernel), settings=few)


@pytest.mark.conformance
def test_an_honest_kernel_is_accepted_and_timed_by_the_devices_events(
    judge: Judge, make_kernel: Callable[..., Kernel]
) -> None:
    evaluation = judge.evaluate(make_kernel(HONEST, **{"BLOCK = 64": "BLOCK = 128"}))
    assert evaluation.accepted, evaluation.message
    assert evaluation.target == "mi300"
    assert evaluation.method.startswith(
        "time between a pair of the device's events round every run, fresh workers"
    )
    assert re.search(r"cold caches: \d+ MiB, more than the caches hold", evaluation.method)
    assert evaluation.timings[0].time_us > 0
    assert evaluation.speedup is not None
    assert any(check.detail.endswith("again in a fresh process") for check in evaluation.checks)


@pytest.mark.slow
@pytest.mark.conformance
def test_warm_caches_are_a_target_of_their_own(machine: None, problem: Problem, few: JudgeSettings) -> None:
    kernel = Kernel.load(problem.default_kernel)
    evaluation = Judge(problem, resolve_target("mi300-warm"), kernel, settings=few).evaluate(kernel)
    assert evaluation.accepted, evaluation.message
    assert "warm caches" in evaluation.method


_AT = "const int i = blockIdx.x * BLOCK + threadIdx.x; const float w = i > 0 && i < n ? x[i - 1] : 0.0f;"
WRONG = {
    "1 of": "if (i < n) y[i] = 2 * x[i] + w + (i == 0);",
    "never written": "if (i + 1 < n) y[i] = 2 * x[i] + w;",
    "outside the buffer y": "y[i] = i < n ? 2 * x[i] + w : 0.0f;",
    "wrote to an input": "if (i < n) y[i] = 2 * x[i] + w; if (i == 0) ((float*)x)[n - 1] += 1;",
}


@pytest.mark.conformance
@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_kernel_is_a_wrong_result(
    judge: Judge, make_kernel: Callable[..., Kernel], said: str
) -> None:
    code = f"__global__ void filter(const float* x, float* y, int n) {{ {_AT} {WRONG[said]} }}"
    evaluation = judge.evaluate(make_kernel(code))
    assert evaluation.verdict is Verdict.WRONG_RESULT
    assert said in evaluation.message


@pytest.mark.conformance
def test_what_does_not_compile_or_end_has_its_verdict(
    judge: Judge, make_kernel: Callable[..., Kernel]
) -> None:
    broken = judge.evaluate(
        make_kernel("__global__ void filter(const float* x, float* y, int n) { y[0] = z; }")
    )
    assert broken.verdict is Verdict.COMPILE_ERROR
    endless = "__global__ void filter(const float* x, volatile float* y, int n) { while (y[0] != 17.0f) {} }"
    assert judge.evaluate(make_kernel(endless)).verdict is Verdict.TIMEOUT


@pytest.mark.parametrize(
    ("fault", "verdict", "said"),
    [
        ("fail hipModuleLaunchKernel 9", Verdict.LAUNCH_ERROR, "hipErrorInvalidConfiguration"),
        ("fail hipEventSynchronize 719 5", Verdict.CRASHED, "hipErrorLaunchFailure"),
        ("lose hipModuleLaunchKernel", Verdict.CRASHED, "The device was lost"),
        ("die hipModuleLaunchKernel", Verdict.CRASHED, "SIGABRT"),
        ("hang hipModuleLaunchKernel", Verdict.TIMEOUT, "were stopped"),
        ("event_factor 0.001", Verdict.IMPLAUSIBLE, "no run was nearer"),
    ],
)
def test_a_fault_of_the_device_has_its_verdict_and_frees_the_device(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, make_kernel: Callable[..., Kernel], fault: str,
    verdict: Verdict, said: str,
) -> None:  # fmt: skip
    judge = Judge(problem, resolve_target("mi300"), Kernel.load(problem.default_kernel), settings=few)
    assert judge.evaluate(judge.baseline).accepted
    rocm.configure(fault)
    evaluation = judge.evaluate(make_kernel(LONG))
    assert evaluation.verdict is verdict, evaluation.message
    assert said in evaluation.message
    assert_no_device_is_locked()


def test_a_device_that_is_gone_ends_the_session_with_a_sentence(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, impatient: None
) -> None:
    kernel = Kernel.load(problem.default_kernel)
    judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
    rocm.configure(devices=0)
    with pytest.raises(
        UnusableEnvironment, match="AMD Instinct MI300X cannot be used: hipInit says hipErrorNoDevice"
    ):
        judge.evaluate(kernel)
    assert_no_device_is_locked()


_GONE_AT_START = ("on {} fail hipInit 100",)
_GONE_UNDER_A_KERNEL = ("on {} lose hipModuleLaunchKernel", "on {} fail hipRuntimeGetVersion 100")


def _gone(faults: Sequence[str], *devices: int) -> list[str]:
    return [fault.format(device) for device in devices for fault in faults]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is lost is lost at once."""
    monkeypatch.setattr("kernel_scientist.tools.targets.mi300._RETURN_PAUSES_S", (0.01,))


@pytest.mark.parametrize("faults", [_GONE_AT_START, _GONE_UNDER_A_KERNEL])
@pytest.mark.slow
def test_when_a_device_is_lost_for_good_another_takes_over_and_it_is_said_once(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, impatient: None, faults: Sequence[str]
) -> None:
    rocm.configure(*_gone(faults, 0), devices=2)
    kernel = Kernel.load(problem.default_kernel)
    judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
    first = judge.evaluate(kernel)
    assert first.accepted, first.message
    (said,) = first.begun_anew
    assert said.startswith("AMD Instinct MI300X at 0000:05:00.0 is lost (")
    assert "hipErrorNoDevice (100)" in said
    assert said.endswith("; 1 of 2 devices is left")
    assert said in first.notes
    with rocm.calls() as log:
        second = judge.evaluate(kernel.with_constants({"BLOCK": 128}))
    assert second.accepted, second.message
    assert second.begun_anew == ()
    assert second.device == first.device
    assert {line.split("device=")[1] for line in log if "hipSetDevice" in line} == {"1 -> 0"}
    assert_no_device_is_locked()


def test_when_no_device_is_left_there_is_a_sentence(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, impatient: None
) -> None:
    kernel = Kernel.load(problem.default_kernel)
    rocm.configure(*_gone(_GONE_AT_START, 0, 1), devices=2)
    judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
    with pytest.raises(UnusableEnvironment) as raised:
        judge.evaluate(kernel)
    assert str(raised.value) == (
        "No device is left of 2 for mi300: AMD Instinct MI300X cannot be used: hipInit says hipErrorNoDevice "
        "(100), no ROCm-capable device is detected; see rocminfo and dmesg."
    )
    assert_no_device_is_locked()


def test_a_kernel_under_which_two_devices_are_lost_has_crashed(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, impatient: None, make_kernel: Callable[..., Kernel]
) -> None:
    rocm.configure(devices=3)
    kernel = Kernel.load(problem.default_kernel)
    judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
    assert judge.evaluate(kernel).accepted
    rocm.configure(*_gone(_GONE_UNDER_A_KERNEL, 0, 1), devices=3)
    evaluation = judge.evaluate(make_kernel(LONG))
    assert evaluation.verdict is Verdict.CRASHED
    assert evaluation.message.startswith("2 devices were lost while it ran: ")
    assert judge.evaluate(kernel.with_constants({"BLOCK": 128})).accepted


def test_a_device_that_is_being_reset_is_waited_for(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_scientist.tools.targets.mi300._RETURN_PAUSES_S", (0.05,) * 400)
    kernel = Kernel.load(problem.default_kernel)
    judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
    rocm.configure("fail hipInit 100")
    timer = threading.Timer(1.0, rocm.configure)
    timer.start()
    with rocm.calls() as log:
        evaluation = judge.evaluate(kernel)
    timer.join()
    assert evaluation.accepted, evaluation.message
    assert evaluation.begun_anew == ()
    assert any(line.endswith("hipInit -> 100") for line in log)


def assert_no_device_is_locked() -> None:
    for path in cache_home().glob("device-*.lock"):
        with FileLock(path, timeout_s=0.0):
            pass


def test_two_sessions_use_two_devices_side_by_side(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings
) -> None:
    rocm.configure("slow hipModuleLoadData 100", devices=2)
    kernel = Kernel.load(problem.default_kernel)
    results: list[Evaluation] = []

    def session() -> None:
        judge = Judge(problem, resolve_target("mi300"), kernel, settings=few)
        results.append(judge.evaluate(kernel))

    with rocm.calls() as log:
        threads = [threading.Thread(target=session) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [one.accepted for one in results] == [True, True]
    assert not [line for line in log if "misuse" in line]
    used = {line.split("device=")[1] for line in log if "hipSetDevice" in line}
    assert used == {"0 -> 0", "1 -> 0"}
    assert all("one of 2" in one.device for one in results)


def test_a_second_session_waits_for_the_only_device(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Mi300Target(), Mi300Target()
    monkeypatch.setattr("kernel_scientist.tools.targets.mi300._LOCK_TIMEOUT_S", 0.3)
    with (
        first.exclusive(),
        pytest.raises(SandboxError, match="using AMD Instinct MI300X"),
        second.exclusive(),
    ):
        pass
    with second.exclusive():
        pass


def test_what_the_device_says_is_checked_against_its_data_sheet(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings
) -> None:
    rocm.configure(compute_units=300, clock_khz=2000000)
    add_smi(rocm)
    kernel = Kernel.load(problem.default_kernel)
    try:
        evaluation = Judge(problem, resolve_target("mi300"), kernel, settings=few).evaluate(kernel)
    finally:
        (rocm.root / "lib/libamd_smi.so").unlink()
    assert (
        "the device says 300 compute units instead of 304, which MI300X has by its data sheet"
        in evaluation.notes
    )
    assert any("a peak clock of 2000 MHz instead of 2100" in note for note in evaluation.notes)
    assert any(
        "clock 2098 MHz, memory clock 1300 MHz, hotspot 51 °C round the batches" in one
        for one in evaluation.notes
    )


@pytest.mark.parametrize(
    ("settings", "name", "share"),
    [
        ({}, "MI300X", 1.0),
        ({"name": "-"}, "MI300X", 1.0),
        ({"name": "-", "memory": 274877906944}, "MI325X", 1.0),
        ({"name": "AMD Instinct MI300A", "compute_units": 228, "xcds": 6}, "MI300A", 1.0),
        ({"compute_units": 38, "xcds": 1}, "MI300X", 1 / 8),
        (
            {
                "name": "AMD Instinct MI250X/MI250",
                "arch": "gfx90a",
                "compute_units": 110,
                "clock_khz": 1700000,
            },
            "MI250X",
            0.5,
        ),
        (
            {
                "name": "-",
                "arch": "gfx950",
                "compute_units": 256,
                "clock_khz": 2400000,
                "memory": 309237645312,
            },
            "MI355X",
            1.0,
        ),
        (
            {
                "name": "-",
                "arch": "gfx950",
                "compute_units": 256,
                "clock_khz": 2200000,
                "memory": 309237645312,
            },
            "MI350X",
            1.0,
        ),
    ],
)
def test_a_device_has_its_share_of_its_packages_peak(
    rocm: FakeRocm, settings: dict[str, object], name: str, share: float
) -> None:
    rocm.configure(**settings)
    (device,) = devices()
    found = peaks_of(device)
    assert found is not None
    assert found[0] == name
    roofline = device_roofline(device)
    assert roofline is not None
    whole = gpu_roofline(name).flops_per_s
    assert roofline.flops_per_s["float32"] == pytest.approx(whole["float32"] * share)
    halves = GPU_PEAKS[name].devices
    assert roofline.bandwidth[0].bytes_per_s == pytest.approx(GPU_PEAKS[name].terabytes * 1e12 / halves)


def test_a_gpu_that_is_not_in_the_table_has_no_speed_of_light(rocm: FakeRocm) -> None:
    rocm.configure(name="AMD Instinct MI999X")
    (device,) = devices()
    assert device_roofline(device) is None
    assert disagreements(device) == [
        "the table of peak rates has no AMD Instinct MI999X, so no speed of light is known"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_other_cdna_devices_are_compiled_for_as_they_are(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings, arch: str
) -> None:
    rocm.configure(arch=f"{arch}:sramecc+:xnack-", name="-")
    kernel = Kernel.load(problem.default_kernel)
    evaluation = Judge(problem, resolve_target("mi300"), kernel, settings=few).evaluate(kernel)
    assert evaluation.accepted, evaluation.message
    assert arch in evaluation.device
    assert [one.arch for one in evaluation.resources] == ["gfx942"]


def test_auto_is_the_gpu_where_there_is_one_that_will_do(rocm: FakeRocm) -> None:
    assert resolve_target("auto").name == "mi300"
    for unusable in ("devices 0", "arch gfx1100", "fail hipInit 35"):
        rocm.configure(unusable)
        assert resolve_target("auto").name == "cpu"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("devices 0", "it finds none"),
        ("arch gfx1100", "its devices are gfx1100; gfx942, gfx90a, gfx950 will do"),
    ],
)
def test_without_a_device_that_will_do_the_target_says_why(rocm: FakeRocm, setting: str, said: str) -> None:
    rocm.configure(setting)
    with pytest.raises(UnusableEnvironment, match=said):
        resolve_target("mi300")


def test_a_judge_that_is_killed_leaves_the_device_free(
    rocm: FakeRocm, problem: Problem, few: JudgeSettings
) -> None:
    rocm.configure("hang hipModuleLaunchKernel")
    argv = [
        sys.executable, "-P", "-m", "kernel_scientist.agents.cli", "bench", str(problem.default_kernel),
        "--problem", str(problem.folder), "--target", "mi300",
    ]  # fmt: skip
    with (
        rocm.calls() as log,
        subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as judge,
    ):
        _until(lambda: any("hipMemsetAsync" in line for line in list(log)), judge)
        judge.kill()
    rocm.configure()
    kernel = Kernel.load(problem.default_kernel)
    with rocm.calls() as log:
        assert Judge(problem, resolve_target("mi300"), kernel, settings=few).evaluate(kernel).accepted
    assert not [line for line in log if "misuse" in line]


def _until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    for _ in range(1500):
        if condition():
            return
        assert process.poll() is None
        threading.Event().wait(0.02)
    raise AssertionError("it did not come to that in 30 s")
