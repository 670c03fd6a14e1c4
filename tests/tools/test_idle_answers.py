"""Answers that take no work are wrong, however loose the tolerance; careful ones are right all the same."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_scientist.tools.oracle import Expectation

POISON = 0xFF


def expectation(
    expected: np.ndarray, *, rtol: float = 0.0, atol: float = 0.0, dtype: str = "float32"
) -> Expectation:
    allowed = atol + rtol * np.abs(expected.astype(np.float64))
    return Expectation("y", dtype, expected, allowed, rtol=rtol, atol=atol)


@pytest.fixture
def means() -> np.ndarray:
    return 0.5 + 0.003 * np.random.default_rng(3).standard_normal(200)


def test_a_constant_is_wrong_where_every_answer_is_near_to_it(means: np.ndarray) -> None:
    wanted = expectation(means, rtol=0.1)
    assert wanted.compare(means.astype(np.float32), POISON) is None
    mismatch = wanted.compare(np.full(200, 0.5, np.float32), POISON)
    assert mismatch is not None
    assert "takes no work" in mismatch.sentence()


def test_a_constant_is_right_where_it_is_the_answer() -> None:
    wanted = expectation(np.full(200, 0.25), rtol=1e-3)
    assert wanted.compare(np.full(200, 0.25001, np.float32), POISON) is None


def test_an_input_handed_back_is_wrong_where_the_answer_hardly_differs_from_it() -> None:
    x = np.random.default_rng(4).uniform(1.0, 6.0, 500)
    wanted = expectation(x + 1e-3 * np.sin(x), rtol=1e-2)
    assert wanted.is_loose
    wanted.outdo(x)
    assert wanted.compare((x + 1e-3 * np.sin(x)).astype(np.float32), POISON) is None
    assert wanted.compare(x.astype(np.float32), POISON) is not None


def test_no_output_is_asked_for_more_than_its_type_can_give() -> None:
    x = np.random.default_rng(5).uniform(1.0, 6.0, 500)
    wanted = expectation(x + 1e-7, rtol=1e-2)
    wanted.outdo(x)
    assert wanted.compare((x * (1 + 5e-6)).astype(np.float32), POISON) is None


def test_a_lone_result_must_be_nearer_than_the_results_of_other_inputs() -> None:
    wanted = expectation(np.array([0.5031]), rtol=0.1)
    wanted.outdo(*(np.array([value]) for value in (0.5002, 0.4978, 0.5011, 0.4969)))
    assert wanted.compare(np.array([0.50312], np.float32), POISON) is None
    assert wanted.compare(np.array([0.5], np.float32), POISON) is not None


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_integers_are_exact_whatever_the_tolerance(dtype: str) -> None:
    # Neighbours here are one number in float64.
    large = 2**31 - 9 if dtype == "int32" else 2**60
    expected = np.full(40, large, dtype)
    wanted = expectation(expected, rtol=0.1, atol=5.0, dtype=dtype)
    assert wanted.compare(expected.copy(), POISON) is None
    wrong = expected.copy()
    wrong[7] += 1
    mismatch = wanted.compare(wrong, POISON)
    assert mismatch is not None
    assert mismatch.wrong == 1
    assert mismatch.index == (7,)
