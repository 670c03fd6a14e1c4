"""Kernel files: what a plan says, where its mistakes stand, and constants changed in place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.kernel import Kernel

SOURCE = """/* plan
[constants]
TILE = 16           # rows and columns of a block
SPLITS = "4 if k > 4096 else 1"
SCALE = 0.5

[tune]
TILE = [8, 16, 32, 64]
where = ["TILE * TILE <= 1024"]

[[scratch]]
name = "partial"
dtype = "float32"
size = "m * n * SPLITS"
init = 0

[[launch]]
when = "SPLITS > 1"
kernel = "part<TILE>"
grid = ["cdiv(n, TILE)", "cdiv(m, TILE)", "SPLITS"]
block = ["TILE", "TILE"]
args = ["a", "partial", "m", 3, 0.5]

[[launch]]
kernel = "whole"
grid = 1
block = 64
lds = "4 * TILE"
repeat = "2"
args = ["a", "c", "step"]
*/
#include <hip/hip_runtime.h>
"""


def test_a_plan_is_read_as_written() -> None:
    plan = Kernel.parse(SOURCE).plan
    assert plan.constants == {"TILE": 16, "SPLITS": "4 if k > 4096 else 1", "SCALE": 0.5}
    assert plan.tune == {"TILE": (8, 16, 32, 64)}
    assert plan.where == ("TILE * TILE <= 1024",)
    assert [item.text for item in plan.launches[0].grid] == ["cdiv(n, TILE)", "cdiv(m, TILE)", "SPLITS"]
    assert [item.text for item in plan.launches[1].block] == ["64"]
    assert plan.launches[1].when is None
    assert plan.scratch[0].init == 0
    assert plan.scratch[0].line == 11
    assert [launch.line for launch in plan.launches] == [17, 24]
    assert plan.constant_lines["SPLITS"] == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("TILE = 16 ", "TILE = = ", 3, "not TOML"),
        ("TILE = 16 ", "TILE = true", 3, "write a number"),
        ("TILE = 16 ", "TILE = [1]", 3, "write a number"),
        ("TILE = 16 ", "TILE = 48", 9, "break the plan's own rule"),
        ("SCALE = 0.5", "SCALE = 'a.b'", 5, "not arithmetic"),
        ("SCALE = 0.5", "SCALE = 'open(1)'", 5, "calls 'open'"),
        ("SCALE = 0.5", "SCALE = 'LATER'\nLATER = 1", 5, "must stand above it"),
        ("SCALE = 0.5", "static_assert = 1", 5, "cannot be the name of a constant"),
        ("SCALE = 0.5", "threadIdx = 1", 5, "cannot be the name of a constant"),
        ("SCALE = 0.5", "ks_run = 1", 5, "cannot be the name of a constant"),
        ("SCALE = 0.5", '"a b" = 1', 5, "cannot be the name of a constant"),
        ("TILE = [8,", "TILES = [8,", 8, "did you mean 'TILE'?"),
        ("[8, 16, 32, 64]", "[]", 8, "no value"),
        ("[8, 16, 32, 64]", "8", 8, "'tune.TILE': write a list, TILE = [...]"),
        ("[constants]", "[[constants]]", 2, "'constants': write a table, [constants]"),
        (SOURCE[SOURCE.index("[[launch]]") : SOURCE.index("*/")], "[launch]\n", 17, "write it as [[launch]]"),
        ('kernel = "whole"', "kernel = 3", 25, "'launch.2.kernel': write a text in quotes"),
        ("SCALE = 0.5", "SCALE = nan", 5, "write a finite number, not nan"),
        ("SCALE = 0.5", 'SCALE = "0 # x"', 5, "arithmetic on one line, without '#'"),
        ("SCALE = 0.5", 'SCALE = "(1\\n+ 2)"', 5, "'(1\\n+ 2)' must be arithmetic on one line"),
        ("SCALE = 0.5", f'"{"x " * 900}" = 1', 5, "x x  ...  x x"),
        ('["TILE * TILE <= 1024"]', '"TILE"', 9, "'where' is a list of expressions in quotes"),
        ("TILE * TILE <= 1024", "1 // (TILE - 16)", 9, "own rule '1 // (TILE - 16)': '1 // (TILE - 16)' div"),
        ("TILE * TILE <= 1024", "TILE * m <= 1024", 9, "may only use constants, not 'm'"),
        ('dtype = "float32"', 'dtype = "float23"', 13, "did you mean 'float32'?"),
        ("init = 0", 'init = "0"', 15, "write a number"),
        ("init = 0", "initial = 0", 15, "did you mean 'init'?"),
        ('size = "m', 'size = "m[0] * m', 14, "not arithmetic"),
        ("[[launch]]\nwhen", "[[launches]]\nwhen", 17, "did you mean 'launch'?"),
        ('kernel = "part<TILE>"', 'kernal = "part<TILE>"', 19, "did you mean 'kernel'?"),
        ('kernel = "part<TILE>"', "", 17, "the key 'kernel' is missing"),
        ('kernel = "part<TILE>"', 'kernel = "part(); evil"', 19, "is not the name of a kernel"),
        ('kernel = "part<TILE>"', 'kernel = "part<1 /* >"', 19, "is not the name of a kernel"),
        ("grid = 1", "grid = [1, 1, 1, 1]", 26, "'launch.2.grid': give at most 3, not 4"),
        ("grid = 1", "grid = []", 26, "'launch.2.grid': is empty; write a list, grid = [...]"),
        ("block = 64", "block = '64 +'", 27, "cannot be parsed"),
        ('repeat = "2"', "repeat = [2]", 29, "write a number"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, message: str) -> None:
    assert old in SOURCE
    with pytest.raises(PlanError) as caught:
        Kernel.parse(SOURCE.replace(old, new, 1), path=Path("mine.hip"))
    assert message in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"mine.hip, line {line}: ")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.as_usage_error(), UsageError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must open with a launch plan"),
        ("__global__ void f() {}\n/* plan\n*/", "must open with a launch plan"),
        ("/* plans */", "must open with a launch plan"),
        ("/* plan\n[constants]\n", "never closed"),
        ("/* plan\n*/", "the key 'launch' is missing"),
        ("/* plan\nx = " + "[" * 5000 + "\n*/", "the plan"),
        ("/* plan\n" + "# " + "x" * 60000 + "\n*/", "may have 50000"),
    ],
)
def test_a_file_without_a_usable_plan_says_so(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Kernel.parse(text)


def test_line_ends_marks_and_comments_in_any_language_do_not_matter() -> None:
    commented = SOURCE.replace("rows and columns", "Höhe und 列")
    dressed = "\ufeff// Lizenz: frei ©\n/* notes,\n not a plan */\n\n" + commented
    windows = dressed.replace("\n", "\r\n")
    plan = Kernel.parse(windows).plan
    assert plan.launches[0].line == 17 + 4
    assert plan.constants == Kernel.parse(SOURCE).plan.constants
    assert Kernel.parse(windows).key == Kernel.parse(dressed).key
    assert Kernel.parse(dressed).key != Kernel.parse(SOURCE).key
    with pytest.raises(PlanError) as caught:
        Kernel.parse(windows.replace("grid = 1", "grd = 1"))
    assert caught.value.line == 26 + 4


def test_a_changed_constant_changes_nothing_else_in_the_file() -> None:
    kernel = Kernel.parse(SOURCE.replace("\n", "\r\n"))
    changed = kernel.with_constants({"TILE": 32, "SPLITS": "2 if m > 3 else 1"})
    assert changed.plan.constants == {"TILE": 32, "SPLITS": "2 if m > 3 else 1", "SCALE": 0.5}
    expected = kernel.source.replace("TILE = 16 ", "TILE = 32 ")
    expected = expected.replace('"4 if k > 4096 else 1"', '"2 if m > 3 else 1"')
    assert changed.source == expected
    assert changed.key != kernel.key
    assert changed.with_constants(kernel.plan.constants).source == kernel.source


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TILE = 16 ", "TILE=16"),
        ("TILE = 16 ", "  TILE   =   16"),
        ("TILE = 16 ", '"TILE" = 16'),
        ("TILE = 16 ", "TILE = '16' # = 17"),
        ("[constants]\nTILE = 16 ", "constants.TILE = 16 #"),
    ],
)
def test_constants_are_found_in_every_way_of_writing_a_line(old: str, new: str) -> None:
    text = SOURCE.replace(old, new, 1)
    if "constants.TILE" in new:
        text = text.replace('SPLITS = "4', 'constants.SPLITS = "4').replace("SCALE", "constants.SCALE")
    changed = Kernel.parse(text).with_constants({"TILE": 8})
    assert changed.plan.constants["TILE"] == 8
    assert len(changed.source.splitlines()) == len(text.splitlines())


def test_constants_that_cannot_be_changed_are_refused() -> None:
    kernel = Kernel.parse(SOURCE)
    with pytest.raises(PlanError, match="did you mean 'TILE'"):
        kernel.with_constants({"TILES": 8})
    with pytest.raises(PlanError, match="break the plan's own rule"):
        kernel.with_constants({"TILE": 64})
    inline = SOURCE.replace(SOURCE[SOURCE.index("[constants]") : SOURCE.index("[tune]")], "")
    inline = inline.replace("/* plan\n", "/* plan\nconstants = { TILE = 16, SPLITS = 1, SCALE = 0.5 }\n")
    with pytest.raises(PlanError, match="as a line 'NAME = value'"):
        Kernel.parse(inline).with_constants({"TILE": 8})


def test_rules_decide_which_constants_are_allowed() -> None:
    plan = Kernel.parse(SOURCE).plan
    assert plan.is_allowed({})
    assert plan.is_allowed({"TILE": 32})
    assert not plan.is_allowed({"TILE": 64})
    assert plan.broken_rule({"TILE": 64}) == "TILE * TILE <= 1024"
    # A rule over a constant that depends on the shape cannot be decided without one.
    shaped = Kernel.parse(SOURCE.replace('where = ["TILE', 'where = ["SPLITS * TILE'))
    assert shaped.plan.is_allowed({"TILE": 64})
    assert not shaped.plan.is_allowed({"TILE": 64, "SPLITS": 1})


def test_an_unreadable_kernel_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such kernel file"):
        Kernel.load(tmp_path / "none.hip")
    with pytest.raises(UsageError, match="cannot be read"):
        Kernel.load(tmp_path)
    with pytest.raises(UsageError, match="not a regular file"):
        Kernel.load("/dev/zero")
    os.mkfifo(tmp_path / "pipe.hip")
    with pytest.raises(UsageError, match="not a regular file"):
        Kernel.load(tmp_path / "pipe.hip")
    with (tmp_path / "huge.hip").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match="and may have 1048576"):
        Kernel.load(tmp_path / "huge.hip")
    binary = tmp_path / "binary.hip"
    binary.write_bytes(b"/* plan\n\xff\n*/")
    with pytest.raises(UsageError, match=r"binary\.hip, line 2: is not UTF-8"):
        Kernel.load(binary)
    broken = tmp_path / "broken.hip"
    broken.write_text("/* plan\nx = \n*/", encoding="utf-8")
    with pytest.raises(PlanError, match=r"broken\.hip, line 2: the plan is not TOML"):
        Kernel.load(broken)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_plans_are_refused_with_a_line_of_the_file_or_read(data: st.DataObject) -> None:
    """Cut out, doubled or overwritten pieces end in a plan or a PlanError, never in another exception."""
    start = data.draw(st.integers(0, len(SOURCE)))
    length = data.draw(st.integers(0, 30))
    pieces = st.sampled_from(["[", '"', "= {", "1e999", "\r", "\x00"])
    piece = data.draw(st.one_of(st.text(max_size=8), pieces))
    damaged = SOURCE[:start] + piece + SOURCE[start + length :]
    try:
        kernel = Kernel.parse(damaged)
    except PlanError as error:
        assert error.line is not None
        assert 1 <= error.line <= damaged.count("\n") + 2
    else:
        assert kernel.plan.launches
