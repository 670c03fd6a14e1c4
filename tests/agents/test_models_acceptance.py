"""With good replies every bundled problem gets a faster kernel; with a useless model none, and it is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Session
from kernel_scientist.tools.problem import list_problems
from kernel_scientist.tools.settings import JudgeSettings, TierSettings

from .conftest import Hold, Shelf
from .openai_server import Say, serve
from .test_openai import _fenced, _request, config

QUICK = JudgeSettings(
    screen=TierSettings(3, 3, 0.3, 1), confirm=TierSettings(6, 6, 1.0, 4), batch_s=0.005, held_out_shapes=1
)

# What a good model would change on the CPU device, for each bundled problem.
CHANGES: dict[str, dict[str, int]] = {
    "matmul": {"THREAD_M": 4, "THREAD_N": 8},
    "softmax": {"THREADS": 8, "ITEMS": 8, "KEEP": 1},
    "rmsnorm": {"THREADS": 8, "ITEMS": 16},
    "transpose": {"TILE": 16, "EACH": 16, "STAGED": 0},
    "reduce_sum": {"THREADS": 16, "ITEMS": 16, "SPLITS": 4},
    "fp8_gemm": {"THREAD_M": 4, "THREAD_N": 4},
}


def expert(changes: dict[str, int]) -> Any:
    """A scripted model of good replies: one experiment, written as changes against the Base."""

    def script(body: dict[str, Any]) -> Say:
        request = _request(body)
        match request["request"]:
            case "select":
                return Say(_fenced({"base_id": "0000", "reference_id": None, "reasons": "the only one"}))
            case "research":
                experiment = {
                    "description": "more work for each thread", "strategy": "register tiling",
                    "rubric": [f"{name} = {value}" for name, value in changes.items()],
                    "uplift_min": 50, "uplift_max": 900, "innovation": 30, "citations": [],
                }  # fmt: skip
                avenues = [{"title": "work per thread"}]
                plan = {"avenues": avenues, "experiments": [experiment], "fewer": "one is enough"}
                return Say(_fenced(plan))
            case "code":
                return Say(f"{_fenced({'report': 'as the rubric says'})}\n{_edits(request, changes)}")
            case _:
                return Say(_fenced({"tried": "more work", "happened": "faster", "next": "more of it"}))

    return script


def _edits(request: dict[str, Any], changes: dict[str, int]) -> str:
    lines = request["base"]["source"].splitlines()
    blocks: list[str] = []
    for name, value in changes.items():
        old = next(line for line in lines if re.match(rf"{name} = \d", line))
        new = re.sub(r"= \d+", f"= {value}", old, count=1)
        blocks.append(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE")
    return "\n".join(blocks)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("problem", list_problems())
def test_good_replies_improve_every_bundled_problem(tmp_path: Path, problem: str) -> None:
    with serve(expert(CHANGES[problem])) as server:
        result = Session(
            problem, target="cpu", generations=1, experiments=1, seed=1, judge=QUICK, knowledge=Shelf(),
            runs_dir=tmp_path / "runs", config=config(server.url),
        ).run()  # fmt: skip
    assert (result.status, result.exit_code) == ("improved", 0)
    assert result.best is not None and result.best.comparison is not None
    assert result.best.speedup.low > 1.5


def test_a_useless_model_ends_with_exit_3_and_that_is_said(hold: Hold) -> None:
    replies = [
        "Certainly! GPUs are fast.",
        "42",
        "```python\nprint('hi')\n```",
        "{}",
        "As a language model, I",
    ]
    count = 0

    def useless(body: dict[str, Any]) -> Say:
        nonlocal count
        count += 1
        return Say(replies[count % len(replies)])

    with serve(useless) as server:
        held = hold(config=config(server.url), generations=3, experiments=2)
    assert (held.result.status, held.result.exit_code) == ("not_improved", 3)
    assert held.result.best is None
    assert "9 of 9 answers of the models could not be used" in held.result.stop_reason
