"""Text built to hang, to crash or to deceive whoever reads it is answered quickly and in one sentence."""

from __future__ import annotations

import time
import unicodedata

import pytest

from kernel_scientist.tools.binding import bind
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.policy import policy_violation
from kernel_scientist.tools.problem import Problem

LAUNCH = '[[launch]]\nkernel = "t"\ngrid = 1\nblock = 1\nargs = ["x", "y"]\n'
# Each of these took minutes to hours before, or would now if it were looked at twice.
PATIENCE_S = 20.0


def text(plan: str, code: str = "") -> str:
    return f"/* plan\n{plan}*/\n{code}"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('R"(' * 300_000, id="raw strings that never end"),
        pytest.param('"' + '\\"' * 400_000, id="one line of escaped quotes"),
        pytest.param("\\'" * 400_000, id="escaped characters"),
        pytest.param("/*" * 400_000, id="comments that never end"),
        pytest.param("\\\n" * 400_000, id="joined lines"),
        pytest.param('R"' * 400_000, id="strings that are almost raw"),
    ],
)
def test_the_text_rules_take_time_in_proportion_to_the_text(source: str) -> None:
    began = time.monotonic()
    policy_violation(source)
    assert time.monotonic() - began < PATIENCE_S


def test_a_directive_cannot_hide_in_what_only_looks_like_a_raw_string() -> None:
    assert policy_violation('auto a = PREFIXR"(";\n#include "/etc/passwd"\nauto b = ")";\n') is not None
    assert policy_violation('auto a = u8R"(\n#include "/etc/passwd"\n)";\n') is None


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(text("a" + ".a" * 20_000 + " = 1\n" + LAUNCH), id="a key of many parts"),
        pytest.param(text("a = " + "[" * 40_000 + "\n" + LAUNCH), id="deep lists"),
        pytest.param(text("[constants]\nN = " + "9" * 20_000 + "\n" + LAUNCH), id="many digits"),
        pytest.param(text(LAUNCH) + "// \ud800", id="half a character"),
        pytest.param(text(LAUNCH) + "/" * (1 << 21), id="megabytes"),
    ],
)
def test_a_plan_that_cannot_be_read_is_a_plan_error(source: str) -> None:
    began = time.monotonic()
    with pytest.raises(PlanError):
        Kernel.parse(source)
    assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    "plan",
    [
        LAUNCH.replace('"t"', '"t\\u001b[2J\\u202e"'),
        LAUNCH.replace('"x"', '"\\u001b]0;owned\\u0007"'),
        '[[scratch]]\nname = "\\u001b[31m"\ndtype = "float32"\nsize = 1\n' + LAUNCH,
        '[constants]\n"\\u001b[31m" = 1\n' + LAUNCH,
    ],
)
def test_a_plan_error_quotes_no_control_characters(plan: str) -> None:
    with pytest.raises(PlanError) as raised:
        bind(Kernel.parse(text(plan)), Problem.load("transpose"), {"rows": 2, "columns": 3})
    for said in (str(raised.value), raised.value.message):
        assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in said), said
