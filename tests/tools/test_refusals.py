"""What is refused from a kernel's text alone, and how it is told to the user whose file it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.evaluation import Check, Evaluation, Verdict
from kernel_scientist.tools.judge import Judge, in_users_file, require_accepted
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets import Target

from .conftest import HONEST

SCRATCH = '[constants]\nBLOCK = 64\n[[scratch]]\nname = "s"\ndtype = "float64"\nsize = "n * 2 ** 14"'


@pytest.fixture(scope="module")
def unjudged(filter_problem: Problem, target: Target, make_kernel: Callable[..., Kernel]) -> Judge:
    """A judge whose baseline does not compile: it raises as soon as that is looked at."""
    return Judge(filter_problem, target, make_kernel("no kernel"), settings=JudgeSettings())


@pytest.mark.parametrize(
    ("code", "changes", "verdict", "says"),
    [
        ("#include <vector>\n" + HONEST, {}, Verdict.REJECTED, "'#include <vector>' is not allowed"),
        ('#line 3 "/etc/hosts"\n' + HONEST, {}, Verdict.REJECTED, "misplace the compiler's messages"),
        (
            HONEST,
            {"BLOCK = 64": "BLOCK = 2048"},
            Verdict.INVALID_PLAN,
            "plan, line 7: a block of 2048 threads",
        ),
        (
            HONEST,
            {"[constants]\nBLOCK = 64": SCRATCH},
            Verdict.INVALID_PLAN,
            "plan, line 7: scratch takes 2621571072 bytes a run for n = 20001, most of them 's'; this target "
            "holds 1073741824: use less",
        ),
    ],
)
def test_a_kernel_that_its_text_speaks_against_is_refused_before_anything_is_judged(
    unjudged: Judge,
    make_kernel: Callable[..., Kernel],
    code: str,
    changes: dict[str, str],
    verdict: Verdict,
    says: str,
) -> None:
    evaluation = unjudged.evaluate(make_kernel(code, **changes))
    assert evaluation.verdict is verdict
    assert says in evaluation.message
    assert [check.passed for check in evaluation.checks] == [False]


def test_a_problem_that_this_machine_cannot_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch, filter_problem: Problem, target: Target
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 256)
    with pytest.raises(UsageError, match=r"problem\.toml: the buffers for n=8192 take 65536 bytes"):
        target.assessor(filter_problem, JudgeSettings(), np.random.SeedSequence(0))


def failed(verdict: Verdict, message: str) -> Evaluation:
    return Evaluation(
        verdict=verdict,
        message=message,
        tier="screen",
        target="cpu",
        device="a device",
        sandbox="none",
        baseline_key="b",
        kernel_key="k",
        checks=(Check("compile", False, message),),
        compile_log="kernel.hip:3:4: error: x\nmykernel.hip:3: kernel.hip is kept\n",
    )


@pytest.mark.parametrize(
    ("verdict", "message", "sentence"),
    [
        (
            Verdict.INVALID_PLAN,
            "a/my.hip, line 9: lds is -1 bytes",
            "a/my.hip, line 9: its launch plan is wrong: lds is -1 bytes; mend the kernel and try again",
        ),
        (
            Verdict.REJECTED,
            "line 2: '#line' is not allowed.",
            "a/my.hip, line 2: it is refused: '#line' is not allowed; mend the kernel and try again",
        ),
        (
            Verdict.COMPILE_ERROR,
            "kernel.hip:4:10: error: no foo\nkernel.hip:5:1: note: see",
            "a/my.hip, line 4: it does not compile: no foo a/my.hip:5:1: note: see; "
            "mend the kernel and try again",
        ),
    ],
)
def test_the_users_own_kernel_is_named_with_its_file_and_line(
    verdict: Verdict, message: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        require_accepted(failed(verdict, message), Path("a/my.hip"))
    assert str(caught.value) == sentence


def test_an_evaluation_for_the_user_names_the_users_file() -> None:
    evaluation = in_users_file(failed(Verdict.COMPILE_ERROR, "kernel.hip:4:10: error: no"), Path("a/my.hip"))
    assert evaluation.message == evaluation.checks[0].detail == "a/my.hip:4:10: error: no"
    assert evaluation.compile_log == "a/my.hip:3:4: error: x\nmykernel.hip:3: kernel.hip is kept\n"
    refused = in_users_file(failed(Verdict.REJECTED, "line 2: no"), Path("a/my.hip"))
    assert refused.message == "a/my.hip, line 2: no"
