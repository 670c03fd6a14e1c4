"""What passes for a right output: honest rounding does, and nothing that merely looks small does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kernel_scientist.tools.dtypes import numpy_dtype
from kernel_scientist.tools.oracle import Expectation, Mismatch, poisoned

Array = npt.NDArray[Any]
POISON = 0xFF


def judged(
    got: Array, expected: Array, *, rtol: float = 0.0, atol: float = 0.0, more: float = 0.0
) -> Mismatch | None:
    allowed = rtol * np.abs(np.asarray(expected, np.float64)) + atol + more
    return Expectation("c", str(got.dtype), expected, allowed, rtol=rtol, atol=atol).compare(got, POISON)


@pytest.fixture
def product() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((48, 96)), rng.standard_normal((96, 40))
    a, b = a.astype(np.float32), b.astype(np.float32)
    return a, b, a.astype(np.float64) @ b.astype(np.float64)


def test_float32_arithmetic_in_another_order_passes(product: tuple[Array, Array, Array]) -> None:
    a, b, want = product
    assert judged(a @ b, want, rtol=1e-4, atol=1e-4) is None
    backwards = sum(np.outer(a[:, p], b[p]) for p in reversed(range(96)))
    assert judged(np.asarray(backwards, np.float32), want, rtol=1e-4, atol=1e-4) is None


@pytest.mark.parametrize("low", [np.float16, ml_dtypes.bfloat16])
def test_a_lower_precision_fails_under_a_loose_tolerance(
    product: tuple[Array, Array, Array], low: Any
) -> None:
    a, b, want = product
    got = (a.astype(low).astype(np.float32) @ b.astype(low).astype(np.float32)).astype(np.float32)
    mismatch = judged(got, want, rtol=0.1, atol=0.5)
    assert mismatch is not None
    assert "lower precision" in mismatch.sentence()


def test_bfloat16_output_rounded_once_passes_and_fp8_accuracy_does_not(
    product: tuple[Array, Array, Array],
) -> None:
    _, _, want = product
    assert judged(want.astype(ml_dtypes.bfloat16), want, rtol=2e-2) is None
    coarse = want.astype(ml_dtypes.float8_e4m3fn).astype(ml_dtypes.bfloat16)
    assert judged(coarse, want, rtol=0.1) is not None


def test_zeros_fail_where_everything_is_below_the_absolute_tolerance() -> None:
    want = np.random.default_rng(1).standard_normal((20, 20)) * 1e-6
    assert judged(np.zeros((20, 20), np.float32), want, rtol=1e-5, atol=1e-3) is not None
    assert judged(want.astype(np.float32), want, rtol=1e-5, atol=1e-3) is None


def test_zeros_fail_in_the_small_rows_of_an_output_with_a_wide_range() -> None:
    want = np.random.default_rng(2).standard_normal((16, 64)) * np.logspace(0, -5, 16)[:, None]
    got = want.astype(np.float32)
    got[-1] = 0
    mismatch = judged(got, want, rtol=1e-5, atol=1e-3)
    assert mismatch is not None
    assert mismatch.index[0] == 15


def test_cancellation_in_one_element_is_allowed_what_single_precision_loses() -> None:
    want = np.full((8, 8), 1000.0)
    want[3, 3] = 1e-5
    got = want.astype(np.float32)
    got[3, 3] = 3e-4
    assert judged(got, want, rtol=1e-5, atol=1e-2) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_pass(bad: float) -> None:
    want = np.ones((4, 8))
    got = want.astype(np.float32)
    got[2, 5] = bad
    mismatch = judged(got, want, rtol=1e30, atol=1e30)
    assert mismatch is not None
    assert (mismatch.index, mismatch.not_finite, mismatch.wrong) == ((2, 5), 1, 1)


def test_expected_infinity_and_nan_must_be_matched_in_kind() -> None:
    want = np.array([1.0, np.inf, np.nan, -np.inf] * 4)
    assert judged(want.astype(np.float32), want, rtol=1e-5) is None
    swapped = np.array([1.0, -np.inf, np.nan, -np.inf] * 4, np.float32)
    assert judged(swapped, want, rtol=1e-5) is not None


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float8_e4m3fnuz", "int8", "int32", "uint8"]
)
def test_elements_never_written_are_counted(dtype: str) -> None:
    want = np.ones(32, dtype=np.float64)
    got = want.astype(numpy_dtype(dtype))
    expected = want if dtype.startswith(("float", "bfloat")) else got.copy()
    got.view(np.uint8)[-3 * got.dtype.itemsize :] = POISON
    mismatch = judged(got, expected, rtol=1.0, atol=1000.0)
    assert mismatch is not None
    assert mismatch.unwritten == 3


def test_an_integer_that_happens_to_be_the_poison_pattern_is_right_where_it_is_expected() -> None:
    want = np.array([-1, 5, -1], np.int32)
    assert judged(want.copy(), want) is None
    assert poisoned(want, POISON).tolist() == [True, False, True]


def test_a_single_wrong_integer_is_found_and_shown() -> None:
    want = np.arange(100, dtype=np.int64).reshape(10, 10)
    got = want.copy()
    got[4, 7] = 0
    mismatch = judged(got, want)
    assert mismatch is not None
    assert mismatch.sentence() == "1 of 100 elements of 'c' are wrong; worst c[4, 7]: expected 47, got 0"


def test_denormal_results_may_be_off_by_a_step_but_not_be_flushed() -> None:
    want = np.full((8, 8), 1e-40)
    near = np.full((8, 8), np.nextafter(np.float32(1e-40), np.float32(1)))
    assert judged(near, want, rtol=1e-6, atol=1e-30) is None
    assert judged(np.zeros((8, 8), np.float32), want, rtol=1e-6, atol=1e-30) is not None


def test_what_the_problem_allows_for_cancellation_counts() -> None:
    want = np.zeros(64)
    want[0] = 1.0
    got = want.astype(np.float32)
    got[1:] = 1e-3
    assert judged(got, want, rtol=1e-5) is not None
    assert judged(got, want, rtol=1e-5, more=2e-3) is None
