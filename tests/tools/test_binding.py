"""Plans bound to a shape: numbers, entry points, and every limit."""

from __future__ import annotations

import pytest

from kernel_scientist.sandbox.compilation import BufferArgument, ScalarArgument
from kernel_scientist.tools.binding import BoundPlan, bind
from kernel_scientist.tools.errors import PlanError, ProblemError
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem

SHAPE = {"m": 100, "n": 70, "k": 33}
LAUNCH = """[[launch]]
kernel = "f<TILE>"
grid = ["cdiv(n, TILE)", "cdiv(m, TILE)"]
block = ["TILE", "TILE"]
args = ["a", "b", "c", "m", "n", "k"]
"""


@pytest.fixture(scope="module")
def matmul() -> Problem:
    return Problem.load("matmul")


def kernel(*tables: str, constants: str = "TILE = 16") -> Kernel:
    return Kernel.parse("\n".join(["/* plan", "[constants]", constants, *tables, "*/\n"]))


def refusal(problem: Problem, candidate: Kernel, shape: dict[str, int] = SHAPE) -> PlanError:
    with pytest.raises(PlanError) as caught:
        bind(candidate, problem, shape)
    return caught.value


def test_a_plan_becomes_numbers_for_one_shape(matmul: Problem) -> None:
    bound = bind(kernel(LAUNCH), matmul, SHAPE)
    assert bound.constants == (("TILE", "16"),)
    (launch,) = bound.launches
    assert (launch.kernel, launch.grid, launch.block, launch.lds_bytes) == (0, (5, 7, 1), (16, 16, 1), 0)
    assert launch.arguments == ("a", "b", "c", 100, 70, 33)
    (entry,) = bound.entries
    assert entry.kernel == "f<TILE>"
    assert entry.threads == 256
    assert entry.arguments == (
        BufferArgument("a", "float32", False),
        BufferArgument("b", "float32", False),
        BufferArgument("c", "float32", True),
        ScalarArgument("m", "int32"),
        ScalarArgument("n", "int32"),
        ScalarArgument("k", "int32"),
    )


def test_constants_over_the_shape_make_another_build_and_variant(matmul: Problem) -> None:
    constants = 'SPLITS = "4 if k > 64 else 1"\nHALF = "SPLITS / 2"\nBELOW = -3'
    launches = """
[[launch]]
when = "SPLITS > 1"
kernel = "split"
grid = "SPLITS"
block = 64
args = ["a", "c"]
[[launch]]
when = "SPLITS == 1"
kernel = "whole"
grid = 1
block = 64
args = ["a", "c"]
"""
    candidate = kernel(launches, constants=constants)
    small, large = bind(candidate, matmul, SHAPE), bind(candidate, matmul, {**SHAPE, "k": 65})
    assert small.constants == (("SPLITS", "1"), ("HALF", "0.5"), ("BELOW", "(-3)"))
    assert large.constants == (("SPLITS", "4"), ("HALF", "2.0"), ("BELOW", "(-3)"))
    assert [entry.kernel for entry in small.entries] == ["whole"]
    assert [entry.kernel for entry in large.entries] == ["split"]
    assert large.launches[0].grid == (4, 1, 1)


def test_repeated_launches_count_their_steps_and_scratch_is_sized(matmul: Problem) -> None:
    scratch = """
[[scratch]]
name = "partial"
dtype = "bfloat16"
size = "m * n * TILE"
init = 1
[[launch]]
repeat = "cdiv(k, 16)"
kernel = "f"
grid = "step + 1"
block = 32
lds = "1024 * step"
args = ["a", "partial", "step", "k - 16 * step", "2.5", "m * 100000000"]
[[launch]]
kernel = "f"
grid = 1
block = 64
args = ["partial", "c", "m", "n", "0.5", "m * 100000000"]
"""
    bound: BoundPlan = bind(kernel(scratch), matmul, SHAPE)
    (buffer,) = bound.scratch
    assert (buffer.elements, buffer.nbytes, buffer.init) == (112000, 224000, 1)
    assert [launch.arguments[2:4] for launch in bound.launches[:3]] == [(0, 33), (1, 17), (2, 1)]
    assert [launch.grid[0] for launch in bound.launches] == [1, 2, 3, 1]
    assert [launch.lds_bytes for launch in bound.launches] == [0, 1024, 2048, 0]
    # float32 and bfloat16 in the first place are different kernels; the scalars are alike.
    assert [entry.threads for entry in bound.entries] == [32, 64]
    dtypes = [argument.dtype for argument in bound.entries[0].arguments]
    assert dtypes == ["float32", "bfloat16", "int32", "int32", "float32", "int64"]


def test_launches_with_the_same_types_share_an_entry_with_the_stricter_access(matmul: Problem) -> None:
    twice = """
[[launch]]
kernel = "f"
grid = 1
block = 256
args = ["c", "c"]
[[launch]]
kernel = "f"
grid = 1
block = 64
args = ["a", "c"]
"""
    bound = bind(kernel(twice), matmul, SHAPE)
    (entry,) = bound.entries
    assert entry.threads == 256
    assert [getattr(argument, "writable", None) for argument in entry.arguments] == [False, True]
    assert [launch.kernel for launch in bound.launches] == [0, 0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'block = ["TILE", "TILE"]',
            "block = 2000",
            "a block of 2000 threads (2000 x 1 x 1) is over the limit",
        ),
        ('block = ["TILE", "TILE"]', "block = [32, 32, 2]", "a block of 2048 threads (32 x 32 x 2)"),
        ('block = ["TILE", "TILE"]', 'block = "TILE - 16"', "block 'TILE - 16' is 0; it must be at least 1"),
        ('block = ["TILE", "TILE"]', 'block = "TILE / 2"', "not an integer; use // or cdiv"),
        ('block = ["TILE", "TILE"]', 'block = "threads"', "unknown name 'threads'"),
        ('"cdiv(m, TILE)"]', '"70000"]', "70000 blocks along y, over the limit of 65535"),
        ('"cdiv(n, TILE)"', '"2 ** 31"', "2147483648 blocks along x, over the limit of 2147483647"),
        (
            '"cdiv(n, TILE)"',
            '"2 ** 31 - 1"',
            "blocks along x, 34359738352 threads, over the limit of 4294967295 threads",
        ),
        ('"cdiv(n, TILE)"', '"n // 0"', "divides by zero"),
        ("args", "lds = 65537\nargs", "lds is 65537 bytes; a block may have 0 to 65536"),
        ("args", 'lds = "-4"\nargs', "lds is -4 bytes"),
        ("args", "repeat = -1\nargs", "repeat is -1"),
        ("args", "repeat = 5000\nargs", "repeat is 5000"),
        ("args", 'when = "m > 1000"\nargs', "no launch runs for this shape"),
        ('"b", ', '"bb", ', "unknown buffer or scalar 'bb' in args; did you mean 'b'?"),
        ('"b", ', '"b + 4", ', "pass buffer 'b' whole"),
        ('"b", ', '"b if m else a", ', "pass buffer 'a' whole"),
        ('"c", ', "", "no launch is given the output 'c'"),
    ],
)
def test_what_a_launch_may_not_ask_for(matmul: Problem, old: str, new: str, message: str) -> None:
    assert old in LAUNCH
    candidate = kernel(LAUNCH.replace(old, new))
    error = refusal(matmul, candidate)
    assert message in str(error)
    # A key's own line; but the table's for what no key alone says.
    lines = candidate.source.splitlines()
    changed = next(number for number, line in enumerate(lines, 1) if new.split("\n")[0] in line)
    assert error.line == (4 if "launch" in message else changed)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ("TILE = 16\nm = 3", "has the name of a scalar or buffer"),
        ("TILE = 16\na = 3", "has the name of a scalar or buffer"),
        ('TILE = "width"', "unknown name 'width'"),
        ('TILE = "16 // (m - 100)"', "divides by zero"),
    ],
)
def test_constants_must_have_names_and_values_of_their_own(
    matmul: Problem, constants: str, message: str
) -> None:
    error = refusal(matmul, kernel(LAUNCH, constants=constants))
    assert message in str(error)
    assert error.line == 2 + constants.count("\n") + 1


@pytest.mark.parametrize(
    ("name", "dtype", "size", "init", "message"),
    [
        ("a", "float32", "1", "0", "already taken"),
        ("TILE", "float32", "1", "0", "already taken"),
        ("s", "float32", "m - 100", "0", "0 elements"),
        ("s", "float32", "2 ** 40", "0", "over 16 GiB"),
        ("s", "int32", "1", "0.5", "cannot start as 0.5"),
        ("s", "uint8", "1", "-5", "cannot start as -5; write an integer that the dtype can hold"),
        ("s", "int8", "1", "128", "cannot start as 128"),
        ("s", "int64", "1", "9223372036854775808", "cannot start as 9223372036854775808"),
        ("s", "float16", "1", "1e6", "cannot start as 1000000.0"),
        ("s", "float32", "1", "1e39", "cannot start as 1e+39"),
        ("s", "float8_e4m3fnuz", "1", "inf", "cannot start as inf"),
        ("s", "int32", "1", "nan", "cannot start as nan"),
        ("s", "float32", "TILES", "0", "did you mean 'TILE'?"),
    ],
)
def test_scratch_must_be_new_and_of_a_usable_size(
    matmul: Problem, name: str, dtype: str, size: str, init: str, message: str
) -> None:
    table = f'[[scratch]]\nname = "{name}"\ndtype = "{dtype}"\nsize = "{size}"\ninit = {init}'
    error = refusal(matmul, kernel(table, LAUNCH))
    assert message in str(error)
    assert error.line == {"taken": 5, "start": 8}.get(message.split()[1 if "start" in message else -1], 7)


@pytest.mark.parametrize(("dtype", "init"), [("float32", "nan"), ("float16", "-inf"), ("uint8", "255")])
def test_scratch_may_start_as_whatever_its_dtype_holds(matmul: Problem, dtype: str, init: str) -> None:
    table = f'[[scratch]]\nname = "s"\ndtype = "{dtype}"\nsize = 1\ninit = {init}'
    (buffer,) = bind(kernel(table, LAUNCH), matmul, SHAPE).scratch
    assert repr(buffer.init) == init


def test_a_value_worth_trying_may_use_only_what_the_constant_may(matmul: Problem) -> None:
    tune = '[tune]\nTILE = [8, "{}"]'
    bind(kernel(tune.format("16 if m > 64 else 8"), LAUNCH), matmul, SHAPE)
    error = refusal(matmul, kernel(tune.format("width"), LAUNCH))
    assert "the value 'width' of 'TILE' in [tune] uses 'width'" in str(error)
    assert error.line == 5


def test_exactly_the_limits_are_allowed(matmul: Problem) -> None:
    most = LAUNCH.replace('["TILE", "TILE"]', "[32, 32]").replace("args", "lds = 65536\nargs")
    bound = bind(kernel(most), matmul, SHAPE)
    assert bound.launches[0].lds_bytes == 65536
    assert bound.entries[0].threads == 1024


def test_shapes_outside_the_domain_are_refused(matmul: Problem) -> None:
    for shape, message in (
        ({"m": 0, "n": 1, "k": 1}, "outside its domain of 1 to 8192"),
        ({"m": 1, "n": 1}, "lacks the dimension 'k'"),
        ({"m": 1, "n": 1, "k": 1, "kk": 2}, "has 'kk', not a dimension; did you mean 'k'?"),
    ):
        with pytest.raises(ProblemError) as caught:
            bind(kernel(LAUNCH), matmul, shape)
        assert message in str(caught.value)
