"""The judge on another machine, over a real sshd on loopback: the same evaluations as here."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.sandbox.remote.faults import RemoteFault
from kernel_scientist.tools.evaluation import Evaluation, Verdict
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.remote.client import Patience
from kernel_scientist.tools.targets import resolve_target
from kernel_scientist.tools.targets.ssh import SshTarget

from ..sandbox.fakehip.machine import FakeRocm
from ..tools.conftest import HONEST, PLAN, write_problem
from .conftest import QUICK
from .server import Relay, SshServer

# Lasts as long as its time limit, which is a second on the machine that judges.
ENDLESS = HONEST.replace("__syncthreads();", "__syncthreads(); volatile int spin = 1; while (spin) {}")


def judge(target: object, problem: Problem) -> Judge:
    return Judge(problem, target, Kernel.load(problem.default_kernel), settings=QUICK, seed=7)  # type: ignore[arg-type]


def through(relay: Relay, ssh: SshServer) -> SshTarget:
    address = SshAddress.parse(ssh.url(port=relay.port))
    return SshTarget(address, patience=Patience(pauses_s=(0.05, 0.05, 0.05)))


def far_processes(ssh: SshServer) -> set[int]:
    """The far ends that run now, by the home that this server gives them; workers have none."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            b"kernel-scientist needs Python" in words
            and f"KERNEL_SCIENTIST_HOME={ssh.home}".encode() in variables
        ):
            found.add(int(folder.name))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_kernel_is_judged_there_as_it_is_here(connected: SshTarget, filter_problem: Problem) -> None:
    there, here = judge(connected, filter_problem), judge(resolve_target("cpu"), filter_problem)
    candidate = there.baseline.with_constants({"BLOCK": 128})
    far, near = there.evaluate(candidate), here.evaluate(candidate)
    assert (far.verdict, far.target, far.sandbox) == (Verdict.ACCEPTED, near.target, near.sandbox)
    assert far.device == f"{near.device}, at {connected.machine.address.destination}"
    assert [one.shape for one in far.timings] == [one.shape for one in near.timings]
    assert far.resources == near.resources
    # The same seed draws the same held-out shapes, whose names are among the checks.
    assert [one.name for one in far.checks] == [one.name for one in near.checks]
    assert Evaluation.from_dict(far.to_dict()) == far


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("2.0f *", "2.5f *", Verdict.WRONG_RESULT),
        ("float* y", "floa* y", Verdict.COMPILE_ERROR),
        ('"n"]', '"m"]', Verdict.INVALID_PLAN),
    ],
)
def test_a_failing_kernel_fails_there_with_the_same_evidence(
    connected: SshTarget, filter_problem: Problem, old: str, new: str, verdict: Verdict
) -> None:
    kernel = Kernel.parse((PLAN + HONEST).replace(old, new))
    far, near = (
        judge(target, filter_problem).evaluate(kernel) for target in (connected, resolve_target("cpu"))
    )
    assert far.verdict is near.verdict is verdict
    assert far.message == near.message


def test_two_kernels_are_compared_there(connected: SshTarget, filter_problem: Problem) -> None:
    one = judge(connected, filter_problem)
    comparison = one.compare(one.baseline, one.baseline.with_constants({"BLOCK": 256}))
    assert comparison.a.accepted and comparison.b.accepted
    assert comparison.timings
    wrong = Kernel.parse(PLAN + HONEST.replace("2.0f *", "2.5f *"))
    failed = one.compare(one.baseline, wrong)
    assert (failed.b.verdict, failed.speedup.high) == (Verdict.WRONG_RESULT, float("inf"))


def test_a_fault_in_the_problem_names_the_file_that_is_here(connected: SshTarget, tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "mine")
    (tmp_path / "mine" / "reference.py").write_text("def inputs(rng, distribution, n):\n    return 1 / 0\n")
    with pytest.raises(UsageError, match=r"ZeroDivisionError") as raised:
        judge(connected, Problem.load(problem.folder)).evaluate(Kernel.load(problem.default_kernel))
    assert str(tmp_path / "mine" / "reference.py") in str(raised.value)


def test_a_problem_that_cannot_be_judged_there_is_named_as_it_is_here(
    connected: SshTarget, tmp_path: Path
) -> None:
    folder = write_problem(tmp_path / "elsewhere").folder
    text = (folder / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace("[shapes.cpu]", "[shapes.recorded]"))
    with pytest.raises(UsageError, match=r"has no shapes for this target") as raised:
        judge(connected, Problem.load(folder))
    assert str(raised.value).startswith(f"{folder / 'problem.toml'}: ")


def test_an_mi300_there_is_used(ssh: SshServer, rocm_folder: FakeRocm, tmp_path: Path) -> None:
    rocm_folder.configure()
    python = tmp_path / "python"
    # As on a GPU node, where a login says where ROCm is. The fake one reads headers that no cage of that
    # machine shows, so it has none, and is allowed to.
    python.write_text(
        "#!/bin/sh\nunset HIP_VISIBLE_DEVICES\nexport KERNEL_SCIENTIST_CAGE=none\n"
        f"export ROCM_PATH={rocm_folder.root}\n"
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    folder = tmp_path / "on a gpu"
    write_problem(folder)
    text = (folder / "problem.toml").read_text()
    (folder / "problem.toml").write_text(text.replace("[shapes.cpu]", "[shapes.mi300]"))
    with pytest.raises(UnusableEnvironment, match=r"On ssh://.*No sandbox works here"):
        SshTarget(ssh.url(python=str(python)))
    target = SshTarget(ssh.url(python=str(python)), allow_no_sandbox=True)
    evaluation = judge(target, problem := Problem.load(folder)).evaluate(Kernel.load(problem.default_kernel))
    target.machine.close()
    assert (evaluation.verdict, evaluation.target) == (Verdict.ACCEPTED, "mi300"), evaluation.message
    assert "MI300X (gfx942, 304 CUs), ROCm runtime" in evaluation.device


def test_a_target_of_that_machine_can_be_named(ssh: SshServer) -> None:
    target = SshTarget(f"{ssh.url()}?target=cpu-all-cores")
    assert target.name == "cpu-all-cores"
    target.machine.close()
    with pytest.raises(UsageError, match=r"there is no target 'cpus'; did you mean 'cpu'\?"):
        SshTarget(f"{ssh.url()}?target=cpus")
    with pytest.raises(UnusableEnvironment, match=r"No ROCm|No device for mi300"):
        SshTarget(f"{ssh.url()}?target=mi300")


def test_many_candidates_go_over_one_connection(
    relay: Relay, ssh: SshServer, filter_problem: Problem
) -> None:
    target = through(relay, ssh)
    one = judge(target, filter_problem)
    for block in (32, 128):
        candidate = one.baseline.with_constants({"BLOCK": block})
        one.prepare(candidate)
        assert one.evaluate(candidate).accepted
    target.machine.close()
    assert relay.accepted == 1


def test_a_candidate_in_flight_is_judged_again_after_a_lost_connection(
    relay: Relay, ssh: SshServer, filter_problem: Problem
) -> None:
    others = far_processes(ssh)
    target = through(relay, ssh)
    one = judge(target, filter_problem)
    assert one.evaluate(one.baseline).accepted
    first = far_processes(ssh) - others
    assert first
    threading.Timer(0.3, relay.cut).start()
    evaluation = one.evaluate(Kernel.parse(PLAN + ENDLESS))
    assert evaluation.verdict is Verdict.TIMEOUT
    assert relay.accepted == 2
    # What the broken connection had started is gone: nothing works on for nobody.
    wait_until(lambda: not first & far_processes(ssh))
    second = far_processes(ssh) - others
    target.machine.close()
    wait_until(lambda: not second & far_processes(ssh))


def test_a_machine_that_stays_away_is_one_sentence_after_a_few_tries(
    relay: Relay, ssh: SshServer, filter_problem: Problem
) -> None:
    target = through(relay, ssh)
    one = judge(target, filter_problem)
    relay.refusing = True
    relay.cut()
    with pytest.raises(RemoteFault, match="tried 4 times") as raised:
        one.evaluate(one.baseline)
    assert raised.value.exit_code == 5
    assert "\n" not in str(raised.value)
    relay.refusing = False
    assert one.evaluate(one.baseline).accepted
    target.machine.close()
