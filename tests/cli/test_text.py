"""Text for people: nothing a candidate wrote moves the cursor; figures carry units and intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.agents.cli.session_options import seconds
from kernel_scientist.agents.cli.text import (
    clean,
    columns,
    duration,
    interval,
    one_line,
    size_text,
    time_text,
)
from kernel_scientist.tools.evaluation import Interval


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb", "ab"),
        ("one\r\ntwo", "one\ntwo"),
        ("ab\u202ecd", "abcd"),
        ("\x9b31mtext", "text"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("Grüße, 速い", "Grüße, 速い"),
    ],
)
def test_escape_sequences_and_controls_are_removed(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


@given(st.text())
def test_cleaned_text_holds_no_control_character(text: str) -> None:
    assert not [
        char for char in clean(text) if (ord(char) < 32 and char not in "\t\n") or 127 <= ord(char) < 160
    ]


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0.5, "0.5 µs"), (812.4, "812 µs"), (2500, "2.5 ms"), (3e6, "3 s"), (None, "not measured")],
)
def test_times_have_the_unit_that_suits_them(microseconds: float | None, text: str) -> None:
    assert time_text(microseconds) == text


def test_a_ratio_is_shown_with_its_interval_and_level() -> None:
    assert interval(Interval(3.214, 3.1, 3.32, 0.99)) == "3.21x (3.10x to 3.32x at 99 %)"


def test_durations_read_as_a_clock() -> None:
    assert [duration(one) for one in (0, 61.9, 59.4, 3725, -3)] == ["0:00", "1:02", "0:59", "1:02:05", "0:00"]


def test_columns_are_aligned() -> None:
    assert columns([("a", "bb"), ("ccc", "d")], header=("x", "y")) == ["x    y", "a    bb", "ccc  d"]


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("0.5m", 30)]
)
def test_lengths_of_time_are_understood(text: str, value: float) -> None:
    assert seconds(text) == value


def test_a_size_has_the_unit_that_suits_it() -> None:
    assert [size_text(one) for one in (1, 12, 95_735, 2_500_000)] == [
        "1 byte",
        "12 bytes",
        "95.7 kB",
        "2.5 MB",
    ]
