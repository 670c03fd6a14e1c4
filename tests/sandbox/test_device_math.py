"""The functions for a GPU without ROCm's device libraries, run on this CPU: they are plain C++."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_scientist.sandbox.compile_step import INCLUDE
from kernel_scientist.sandbox.processes import run
from kernel_scientist.sandbox.toolchain import find_toolchain

Array = NDArray[np.float64]

# name: (range of arguments, allowed error in units in the last place)
DOUBLE = {
    "exp": ((-700, 700), 2), "exp2": ((-1000, 1000), 2), "exp10": ((-300, 300), 2), "expm1": ((-2, 2), 4),
    "log": ((1e-3, 5), 2), "log2": ((1e-3, 5), 2), "log10": ((1e-3, 5), 3), "log1p": ((-0.9, 3), 3),
    "sin": ((-1e4, 1e4), 2), "cos": ((-1e4, 1e4), 2), "tan": ((-100, 100), 4),
    "atan": ((-10, 10), 3), "asin": ((-1, 1), 6), "acos": ((-1, 1), 6),
    "sinh": ((-30, 30), 4), "cosh": ((-30, 30), 4), "tanh": ((-5, 5), 8),
    "asinh": ((-50, 50), 6), "acosh": ((1, 50), 6), "atanh": ((-1, 1), 6), "cbrt": ((-1e3, 1e3), 6),
    "erf": ((-5, 5), 20),
}  # fmt: skip
SINGLE = {
    "expm1": (-6.0, 6.0), "log1p": (0.0, 6.0), "tanh": (-6.0, 6.0), "erf": (-6.0, 6.0),
    "sin": (-1e4, 1e4), "cos": (-1e4, 1e4),
}  # fmt: skip
PAIRS = ["pow", "atan2", "hypot", "remainder", "fdim", "nextafter"]


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A library of loops, one per function, built from the header as it is."""
    folder = tmp_path_factory.mktemp("libm")
    one = (
        "void call_{0}(const {1}* x, {1}* y, long n) {{\n"
        "  for (long i = 0; i < n; i++) y[i] = ks_{0}(x[i]);\n}}\n"
    )
    two = (
        "void call_{0}(const double* a, const double* b, double* y, long n) {{\n"
        "  for (long i = 0; i < n; i++) y[i] = ks_{0}(a[i], b[i]);\n}}\n"
    )
    source = "#define KS_INLINE static inline __attribute__((unused))\n#include <ks/libm_float.h>\n"
    source += 'extern "C" {\n' + "".join(
        one.format(name, "double") for name in [*DOUBLE, "erfc", "lgamma", "tgamma"]
    )
    source += (
        "".join(one.format(f"{name}f", "float") for name in SINGLE) + "".join(map(two.format, PAIRS)) + "}\n"
    )
    (folder / "functions.cpp").write_text(source)
    toolchain = find_toolchain("cpu")
    flags = [
        "-target",
        "x86_64-linux-gnu",
        "-std=c++20",
        "-O1",
        "-fPIC",
        "-nostdinc",
        "-isystem",
        str(INCLUDE / "amdgpu"),
    ]
    for argv in (
        [*toolchain.clang, *flags, "-c", "functions.cpp", "-o", "functions.o"],
        [*toolchain.lld, "-shared", "functions.o", "-o", "functions.so"],
    ):
        completed = run(argv, cwd=folder, timeout_s=60.0)
        assert completed.returncode == 0, completed.stderr.decode()
    return ctypes.CDLL(str(folder / "functions.so"))


def values(functions: ctypes.CDLL, name: str, *arguments: NDArray[np.floating]) -> NDArray[np.floating]:
    result = np.empty_like(arguments[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arguments, result)]
    getattr(functions, f"call_{name}")(*pointers, ctypes.c_long(result.size))
    return result


def reference(name: str) -> Callable[[float], float]:
    special = {"exp2": lambda x: 2.0**x, "exp10": lambda x: float(np.power(10.0, x)), "tgamma": math.gamma}
    return special.get(name) or getattr(math, name)  # type: ignore[no-any-return]


def ulps(found: NDArray[np.floating], expected: Array) -> float:
    return float(np.max(np.abs(found - expected) / np.spacing(np.abs(expected).astype(found.dtype))))


@pytest.mark.parametrize("name", DOUBLE)
def test_double_precision_is_close_to_the_c_library(functions: ctypes.CDLL, name: str) -> None:
    (low, high), allowed = DOUBLE[name]
    x = np.random.default_rng(1).uniform(low, high, 2000)
    assert ulps(values(functions, name, x), np.array([reference(name)(v) for v in x.tolist()])) <= allowed


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_is_within_two_units(functions: ctypes.CDLL, name: str) -> None:
    x = np.random.default_rng(2).uniform(*SINGLE[name], 5000).astype(np.float32)
    assert ulps(values(functions, f"{name}f", x), np.array([reference(name)(v) for v in x.tolist()])) <= 2


@pytest.mark.parametrize(
    ("name", "low", "high"), [("erfc", -5, 20), ("lgamma", -4.5, 50), ("tgamma", -4.5, 50)]
)
def test_the_tails_of_erf_and_the_gamma_functions_agree(
    functions: ctypes.CDLL, name: str, low: float, high: float
) -> None:
    x = np.random.default_rng(3).uniform(low, high, 500)
    expected = np.array([reference(name)(v) for v in x.tolist()])
    np.testing.assert_allclose(
        values(functions, name, x), expected, rtol=1e-12, atol=1e-13 if name == "lgamma" else 0
    )


def test_pow_is_accurate_where_its_exponent_is_large(functions: ctypes.CDLL) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0, 10, 5000), rng.uniform(-50, 50, 5000)
    assert ulps(values(functions, "pow", a, b), a**b) <= 8


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1e308, -1e308, 1, -1, 2, -2, 0.5, 3, -3]
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_special_values_of_two_arguments_follow_the_c_standard(functions: ctypes.CDLL, name: str) -> None:
    a, b = (grid.ravel().copy() for grid in np.meshgrid(SPECIAL, SPECIAL))
    functions_of = {
        "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "nextafter": np.nextafter,
        "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x <= y, 0.0, x - y)),
        "remainder": np.vectorize(_remainder),
    }  # fmt: skip
    expected = functions_of[name](a, b)
    np.testing.assert_allclose(values(functions, name, a, b), expected, rtol=1e-12, atol=0, equal_nan=True)


def _remainder(x: float, y: float) -> float:
    try:
        return math.remainder(x, y)
    except ValueError:
        return math.nan


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name",
    ["exp", "exp2", "log", "log2", "log10", "expm1", "log1p", "arctan", "arcsin", "arccos", "tanh", "sinh",
     "cosh", "arcsinh", "arccosh", "arctanh", "cbrt"],
)  # fmt: skip
def test_special_values_of_one_argument_follow_the_c_standard(functions: ctypes.CDLL, name: str) -> None:
    found = values(functions, name.replace("arc", "a"), SPECIAL)
    np.testing.assert_allclose(found, getattr(np, name)(SPECIAL), rtol=1e-12, atol=0, equal_nan=True)
