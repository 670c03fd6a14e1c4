"""The same program in other words is recognised, and two programs are never taken for one."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from autogen_core.models import LLMMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.models.scripted import Reply, ScriptedModel
from kernel_scientist.agents.policies.normal_form import normal_key, tokens_of
from kernel_scientist.agents.requests import Request
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem, list_problems

from .conftest import Hold

SOURCES = {
    f"{problem}/{name}": path.read_text()
    for problem in list_problems()
    for name, path in Problem.load(problem).kernels.items()
}
PLAN = """/* plan
[constants]
TILE = 16
SPLITS = "4 if k > 4096 else 1"
[tune]
TILE = [8, 16]
[[launch]]
kernel = "mm<TILE, kWidth>"
grid = "cdiv(n, TILE)"
block = [ "TILE", 4 ]
args = ["a", "c", "n"]
*/
#include <hip/hip_runtime.h>
"""
CODE = """
constexpr int kWidth = 8;
constexpr int kRows = TILE / 4;
struct Pair { float x; float y; };
template <int W, int V> __global__ void mm(const float* a, float* c, int n) {
  __shared__ float tile[kRows];
  const int x = threadIdx.x;
  float sum = 0.0f, other = 1.0f;
  Pair pair;
  pair.y = sum;
#pragma unroll 4
  for (int i = 0; i < n; ++i) sum += a[i + x] * pair.y;
  for (int j = 0; j < n; ++j) { float last = a[j]; sum -= last; }
  c[x] = sum + + other; /* the end */
}
"""


def key(code: str, plan: str = PLAN) -> str:
    return normal_key(Kernel.parse(plan + code), plan + code)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"/\* the end \*/", "// over"),
        (r"\n  ", "\n\t\t"),
        (r"float sum = ", "float  sum=\n"),
        (r"\bsum\b", "total"),
        (r"\bi\b", "index"),
        (r"\ba\b", "input"),
        (r"\bkRows\b", "kHeight"),
        (r"\btile\b", "staged"),
        (r"\blast\b", "latest"),
    ],
)
def test_another_wording_is_the_same_program(old: str, new: str) -> None:
    changed = re.sub(old, new, CODE)
    assert changed != CODE and key(changed) == key(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TILE = 16\n", "TILE = 0x10 # sixteen\n"),
        ("TILE = [8, 16]", "TILE = [8, 16, 32]"),
        ("mm<TILE, kWidth>", "mm< TILE,kWidth >"),
        ('"cdiv(n, TILE)"', '["cdiv(n,TILE)"]'),
    ],
)
def test_another_wording_of_the_plan_is_the_same_program(old: str, new: str) -> None:
    assert key(CODE, PLAN.replace(old, new)) == key(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float sum = 0.0f, other = 1.0f;", "float sum = 1.0f, other = 0.0f;"),
        ("a[i + x]", "a[x + i]"),
        ("sum + + other", "sum ++ other"),
        ("sum -= last", "sum -= sum"),
        ("float x; float y;", "float y; float x;"),
        ("threadIdx.x", "threadIdx.y"),
        ("pair.y", "pair.x"),
        ("unroll 4", "unroll 8"),
        ("kWidth = 8", "kWidth = 4"),
        ("constexpr int kWidth = 8;\nconstexpr int kRows = TILE / 4;",
         "constexpr int kRows = 8;\nconstexpr int kWidth = TILE / 4;"),
        ("const float* a, float* c", "float* a, const float* c"),
        ("int W, int V", "int V, int W, int U"),
        ("{ float last = a[j]; sum -= last; }", "float last = a[j]; sum -= last;"),
        ("float last = a[j]; sum -= last;", "float warpSize = a[j]; sum -= warpSize;"),
        ("float last = a[j]; sum -= last;", "float class = a[j]; sum -= class;"),
        ("int j = 0; j < n; ++j", "int _ = 0; _ < n; ++_"),
    ],
)  # fmt: skip
def test_what_may_compute_something_else_is_another_program(old: str, new: str) -> None:
    assert old in CODE and key(CODE.replace(old, new)) != key(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("TILE = 16\n", "TILE = 16.0\n"), ("SPLITS", "PARTS"), ("k > 4096", "k >= 4096"),
     ('"a", "c"', '"c", "a"'),
     ("mm<TILE, kWidth>", "mm<kWidth, TILE>"), ('[ "TILE", 4 ]', '[4, "TILE"]')],
)  # fmt: skip
def test_another_plan_is_another_program(old: str, new: str) -> None:
    assert key(CODE, PLAN.replace(old, new)) != key(CODE)


@pytest.mark.parametrize(
    "code",
    ["int line = __LINE__;", "#define GLUE(x) x##1", "const char* s = R\"(a  b)\";", "int a\\\n= 1;",
     'asm("s_nop 0");', "/* open", "char c = '", "int é = 1;"],
)  # fmt: skip
def test_a_text_that_can_see_itself_is_compared_as_it_is(code: str) -> None:
    assert tokens_of(code) is None
    assert key(code) == key(code) != key(code + "\n// more")


def test_a_name_that_the_plan_uses_is_not_exchanged() -> None:
    swapped = CODE.replace("kWidth", "?").replace("kRows", "kWidth").replace("?", "kRows")
    assert key(swapped) != key(CODE)


@pytest.mark.parametrize("name", SOURCES)
def test_a_bundled_kernel_reworded_throughout_is_the_same_program(name: str) -> None:
    source = SOURCES[name]
    reworded = re.sub(r"\n", "\n// a remark\n\n", source[source.index("*/") + 2 :].replace("\t", "  "))
    text = source[: source.index("*/") + 2] + reworded
    # Comment lines of the source itself end where they did.
    assert normal_key(Kernel.parse(text), text) == normal_key(Kernel.parse(source), source)


_MUTABLE = re.compile(r"[A-Za-z_]\w*|\d+|[-+*/<>=&|]")


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(SOURCES)), seed=st.integers(0, 2**32))
def test_a_random_change_of_one_token_is_never_taken_for_the_same_program(name: str, seed: int) -> None:
    """One token is exchanged for another of the file, or taken out, or two change places."""
    draw = random.Random(seed)
    source = SOURCES[name]
    tokens = tokens_of(source)
    assert tokens is not None
    words = [one.text for one in tokens]
    changed = list(words)
    place = draw.randrange(len(words))
    match draw.randrange(3):
        case 0:
            changed[place] = draw.choice(words)
        case 1:
            del changed[place]
        case _:
            other = draw.randrange(len(words))
            changed[place], changed[other] = changed[other], changed[place]
    plan = source[: source.index("*/") + 2]
    if changed == words:
        return
    first, second = ("\n".join([plan, *some]) + "\n" for some in (words, changed))
    assert normal_key(Kernel.parse(first), first) != normal_key(Kernel.parse(second), second)


@settings(max_examples=50, deadline=None)
@given(text=st.text(alphabet="ab1 .+-*/<>=&|(){}[];,'\"#\n\\:%", max_size=60))
def test_no_text_whatever_stops_the_normaliser(text: str) -> None:
    key(text.replace("*/", ""))
    with pytest.raises(PlanError):
        Kernel.parse(text)
    assert normal_key(None, text)


def test_a_long_text_takes_no_time_to_speak_of() -> None:
    """Every token is looked at once: ten times the text takes about ten times as long, not a hundred."""
    import time

    def seconds(copies: int) -> float:
        text = "{ int a = 1; for (int i = 0; i < a; ++i) a += i; }\n" * copies
        began = time.perf_counter()
        key(text)
        return time.perf_counter() - began

    seconds(100)
    assert seconds(3000) < 60 * seconds(300)


def test_the_same_program_in_other_words_costs_no_evaluation_and_this_is_said(
    hold: Hold, tmp_path: Path
) -> None:
    def coder(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        assert request.request == "code"
        source = request.base.source.replace("PAD = 0 ", "PAD = 4 ").replace("THREAD_N = 1 ", "THREAD_N = 2 ")
        if request.generation == 2:
            source = re.sub(r"\brow0\b", "first_row", source) + "// the same\n"
        return f'```json\n{{"report": "r"}}\n```\n```hip\n{source}\n```'

    held = hold(generations=2, experiments=1, models={"coder": ScriptedModel(coder)}, policy=Start())
    first, second = held.of(ev.EvaluationFinished)[1:]
    assert (first.reused_from, second.reused_from) == (None, "0001")
    assert second.evaluation.timings == first.evaluation.timings
    assert held.run.info.totals.evaluations == 1 and held.run.info.totals.candidates == 2
    tool = [event for event in held.of(ev.ToolCall) if event.tool == "evaluate_kernel"][-1]
    assert "the same program as candidate 0001" in tool.result
    assert len([event for event in held.of(ev.EvaluationStarted) if event.tier == "screen"]) == 2


class Start:
    """A policy that always builds on the starting kernel."""

    name = "start"

    def choose(self, situation: object) -> object:
        from kernel_scientist.agents.policies import Parents

        return Parents("0000", None, "")
