"""Expressions: what counts as arithmetic, what it comes to, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.tools.errors import ExpressionError
from kernel_scientist.tools.expressions import Expression

NAMES: dict[str, int | float] = {"m": 100, "n": 7, "k": 0, "TILE": 32, "half": 0.5, "x2": 4}


def value(text: str | int | float) -> int | float:
    return Expression.parse(text).evaluate(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m * n + 1", 701),
        ("cdiv(m, TILE)", 4),
        ("cdiv(-7, 2)", -3),
        ("min(m, n, 3)", 3),
        ("max(m, n)", 100),
        ("4 if m > 64 else 1", 4),
        ("4 if m > 64 and n > 64 else 1", 1),
        ("1 < n <= 7", 1),
        ("not k", 1),
        ("m % TILE == 0 or n == 7", 1),
        ("-n // 2", -4),
        ("2 ** 10", 1024),
        ("m / 8", 12.5),
        ("m * half", 50.0),
        ("k and 1 // k", 0),
        ("1e-3 * 1_000 + .5 + 2.", 3.5),
        ("x2 + 1", 5),
        (3, 3),
        (0.25, 0.25),
        (" m ", 100),
    ],
)
def test_arithmetic_has_its_usual_value(text: str | int | float, expected: int | float) -> None:
    got = value(text)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "m.real",
        "m[0]",
        "'a' * 3",
        "[m]",
        "(m, n)",
        "lambda: 1",
        "(x := 3)",
        "f(m)",
        "min.x(m, n)",
        "min(m)",
        "min(*m)",
        "cdiv(m)",
        "cdiv(m, n, k)",
        "min(m, key=n)",
        "True",
        "None",
        "1j",
        "m & n",
        "m in n",
        "m is n",
        "~m",
        "m @ n",
        "min",
        "m +",
        "",
        "m; n",
        "1if m else 2",
        ".5and m",
        "0x10",
        "\N{FULLWIDTH LATIN SMALL LETTER M}",
        "m\x00",
        "0x" + "f" * 2000,
        "(" * 300 + "m" + ")" * 300,
        "-" * 200 + "m",
        "+".join(["m"] * 400),
        "m # n",
        "(m\n+ n)",
        "m\r",
    ],
)
def test_what_is_not_arithmetic_is_refused_before_it_is_evaluated(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(text)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable() and str(caught.value).isascii() == text.isascii()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m // k", "divides by zero"),
        ("m % k", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("2 ** 64", "too large"),
        (str(2**63), "too large"),
        ("9223372036854775807 + 1", "too large"),
        ("1e308 * 10", "no finite value"),
        ("10.0 ** 400", "too large"),
        ("(-1) ** 0.5", "no finite value"),
        ("x + 1", "unknown name 'x'"),
        ("tile", "did you mean 'TILE'?"),
    ],
)
def test_an_expression_without_a_usable_value_says_why(text: str, message: str) -> None:
    names = {"m": 1, "k": 0, "TILE": 2}
    with pytest.raises(ExpressionError, match=message.replace("?", r"\?")):
        Expression.parse(text).evaluate(names)


def test_an_integer_is_asked_for_where_one_is_needed() -> None:
    assert Expression.parse("m // 8").evaluate_integer(NAMES) == 12
    with pytest.raises(ExpressionError, match="use // or cdiv"):
        Expression.parse("m / 4").evaluate_integer(NAMES)


def test_names_are_those_read_and_functions_are_not_among_them() -> None:
    expression = Expression.parse("cdiv(m, TILE) if n else min(k, 3)")
    assert expression.names == {"m", "TILE", "n", "k"}
    assert expression.name() is None
    assert Expression.parse(" m ").name() == "m"


_LEAVES = st.one_of(
    st.integers(-50, 50).map(str),
    st.floats(-9, 9, allow_nan=False).map(lambda number: f"{number:.3f}"),
    st.sampled_from(["m", "n", "TILE"]),
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "<", ">=", "=="]), inner)
    choice = st.tuples(inner, inner, inner)
    return st.one_of(
        binary.map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        choice.map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"max({parts[0]}, {parts[1]})"),
    )


@given(st.recursive(_LEAVES, _combined, max_leaves=12))
def test_values_agree_with_python_on_random_arithmetic(text: str) -> None:
    names: dict[str, Any] = {"m": 100, "n": 7, "TILE": 32}
    try:
        expected = eval(text, {"max": max}, names)
    except (ZeroDivisionError, OverflowError):
        expected = math.nan
    try:
        got = Expression.parse(text).evaluate(names)
    except ExpressionError:
        assert not math.isfinite(expected) or abs(expected) > 2**63 - 1
        return
    assert got == expected
