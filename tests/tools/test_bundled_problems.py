"""The bundled problems: references against other formulas, and every kernel through compiler and worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import CodeObject, Compiler, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.execution import Fill, Finished, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace
from kernel_scientist.tools.binding import BoundPlan, bind
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem, list_problems
from kernel_scientist.tools.problem_check import check_problem

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
Shape = Mapping[str, int]

# Constants far from the starting values, one set per kernel and branch of it.
TUNED: dict[tuple[str, str], list[dict[str, int]]] = {
    ("matmul", "tiled"): [
        {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "THREAD_M": 4, "THREAD_N": 16, "PAD": 4, "UNROLL": 4},
        {"TILE_M": 32, "TILE_N": 64, "TILE_K": 8, "THREAD_M": 2, "THREAD_N": 4, "INTERLEAVE": 1},
    ],
    ("softmax", "rowwise"): [{"THREADS": 8, "ROWS": 4, "ITEMS": 4, "KEEP": 1}],
    ("rmsnorm", "rowwise"): [{"THREADS": 16, "ROWS": 4, "ITEMS": 8}],
    ("transpose", "tiled"): [
        {"TILE": 32, "EACH": 8, "PAD": 1},
        {"TILE": 32, "EACH": 16, "STAGED": 0},
    ],
    ("reduce_sum", "two_pass"): [{"THREADS": 64, "ITEMS": 8, "SPLITS": 4}],
    ("fp8_gemm", "scalar"): [{"TILE_M": 64, "TILE_N": 64, "THREAD_M": 4, "THREAD_N": 16, "UNROLL": 2}],
    ("fp8_gemm", "mfma"): [
        {"WAVES_M": 1, "WAVES_N": 1, "TILES_M": 2, "TILES_N": 2, "TILE_K": 64, "PAD": 8},
        {"WAVES_N": 4, "TILE_K": 16},
    ],
}
KERNELS = [(name, kernel) for name in list_problems() for kernel in Problem.load(name).kernels]


@pytest.fixture(scope="module")
def cage() -> Cage:
    return select_cage()


@pytest.fixture(scope="module")
def cpu() -> Compiler:
    return open_compiler("cpu")


@pytest.fixture(scope="module")
def gpu() -> Compiler:
    return open_compiler("gfx942")


def build(compiler: Compiler, kernel: Kernel, plan: BoundPlan) -> CodeObject:
    built = compiler.compile(CompileRequest(kernel.source, plan.entries, plan.constants))
    assert isinstance(built, CodeObject), built.message
    return built


def run(
    problem: Problem, plan: BoundPlan, code: CodeObject, cage: Cage, shape: Shape, inputs: Sequence[Arrays]
) -> list[Arrays]:
    """The outputs of one run of the plan for each of `inputs`, every output poisoned before."""
    regions = [
        Region(buffer.name, buffer.nbytes(shape), "read" if buffer.role == "input" else "write")
        for buffer in problem.buffers
    ]
    regions += [Region(scratch.name, scratch.nbytes, "write") for scratch in plan.scratch]
    number = {region.name: index for index, region in enumerate(regions)}
    launches: list[KernelLaunch | Fill] = [
        Fill(number[item.name], item.init, item.dtype) for item in plan.scratch if item.init is not None
    ]
    for launch in plan.launches:
        arguments = tuple(Pointer(number[a]) if isinstance(a, str) else a for a in launch.arguments)
        launches.append(KernelLaunch(launch.kernel, launch.grid, launch.block, launch.lds_bytes, arguments))
    with Workspace(regions, len(inputs)) as workspace:
        for index, arrays in enumerate(inputs):
            for name, array in arrays.items():
                workspace.view(index, number[name])[:] = memoryview(problem.buffer(name).pack(array))
        workspace.poison()
        outcome = run_batch(code, workspace, launches, count=len(inputs), timeout_s=60, cage=cage)
        assert isinstance(outcome, Finished), outcome
        assert workspace.damaged() == []
        return [
            {
                buffer.name: buffer.view(workspace.view(index, number[buffer.name]), shape).astype(np.float64)
                for buffer in problem.buffers
                if buffer.role == "output"
            }
            for index in range(len(inputs))
        ]


def check(problem: Problem, kernel: Kernel, shape: Shape, compiler: Compiler, cage: Cage, seed: int) -> None:
    plan = bind(kernel, problem, shape)
    code = build(compiler, kernel, plan)
    rng = np.random.default_rng(seed)
    drawn = [problem.inputs(rng, distribution, shape) for distribution in problem.distributions]
    outputs = run(problem, plan, code, cage, shape, drawn)
    for distribution, inputs, got in zip(problem.distributions, drawn, outputs, strict=True):
        expected = problem.reference(inputs, shape)
        allowed = problem.allowance(expected, inputs, shape)
        for name, want in expected.items():
            error = np.abs(got[name] - want)
            assert np.isfinite(got[name]).all(), (distribution, name)
            assert (error <= allowed[name]).all(), (distribution, name, float((error - allowed[name]).max()))


@pytest.mark.parametrize("name", list_problems())
def test_nothing_is_wrong_with_a_bundled_problem(name: str) -> None:
    problem = Problem.load(name)
    assert check_problem(problem) == []
    assert set(problem.shapes) == {"cpu", "mi300"}
    assert 2 <= len(problem.shapes["cpu"].benchmarks) <= 3
    assert len(problem.description) > 80


@pytest.mark.parametrize(("name", "kernel_name"), KERNELS)
def test_a_starting_kernel_is_right_on_every_test_shape(
    name: str, kernel_name: str, cpu: Compiler, cage: Cage
) -> None:
    problem = Problem.load(name)
    kernel = Kernel.load(problem.kernels[kernel_name])
    for seed, shape in enumerate(problem.shapes["cpu"].tests):
        check(problem, kernel, shape, cpu, cage, seed)


@pytest.mark.parametrize(
    ("name", "kernel_name", "constants"),
    [(*key, constants) for key, choices in TUNED.items() for constants in choices],
)
def test_a_kernel_stays_right_when_its_constants_are_tuned(
    name: str, kernel_name: str, constants: dict[str, int], cpu: Compiler, cage: Cage
) -> None:
    problem = Problem.load(name)
    kernel = Kernel.load(problem.kernels[kernel_name])
    for constant, value in constants.items():
        assert value in (*kernel.plan.tune[constant], kernel.plan.constants[constant])
    shape = problem.shapes["cpu"].tests[-2]
    check(problem, kernel.with_constants(constants), shape, cpu, cage, seed=9)


@pytest.mark.parametrize(("name", "kernel_name"), KERNELS)
def test_a_starting_kernel_compiles_for_gfx942_without_spills(
    name: str, kernel_name: str, gpu: Compiler
) -> None:
    problem = Problem.load(name)
    kernel = Kernel.load(problem.kernels[kernel_name])
    code = build(gpu, kernel, bind(kernel, problem, problem.shapes["mi300"].benchmarks[0]))
    for compiled in code.kernels:
        assert compiled.resources is not None
        assert compiled.resources.vgpr_spills == 0
        assert compiled.resources.scratch_bytes == 0
        assert compiled.resources.occupancy > 0
        assert (compiled.resources.instructions.get("mfma", 0) > 0) == (kernel_name == "mfma")


def test_every_kernel_has_a_tuned_variant_and_an_untuned_start() -> None:
    assert set(TUNED) == set(KERNELS)
    for name, kernel_name in KERNELS:
        plan = Kernel.load(Problem.load(name).kernels[kernel_name]).plan
        assert set(plan.tune) == set(plan.constants)
        assert all(plan.constants[constant] in values for constant, values in plan.tune.items())


def _matmul(inputs: Arrays, _: Shape) -> Callable[..., float]:
    a, b = inputs["a"], inputs["b"]
    return lambda i, j: math.fsum(float(x) * float(y) for x, y in zip(a[i], b[:, j], strict=True))


def _softmax(inputs: Arrays, _: Shape) -> Callable[..., float]:
    x = inputs["x"]
    return lambda i, j: 1.0 / math.fsum(math.exp(min(700.0, float(other) - float(x[i, j]))) for other in x[i])


def _rmsnorm(inputs: Arrays, _: Shape) -> Callable[..., float]:
    x, weight = inputs["x"], inputs["weight"]

    def at(i: int, j: int) -> float:
        norm = math.sqrt(math.fsum(float(value) ** 2 for value in x[i]) / len(x[i]) + 1e-6)
        return float(x[i, j]) * float(weight[j]) / norm

    return at


def _transpose(inputs: Arrays, _: Shape) -> Callable[..., float]:
    return lambda i, j: float(inputs["x"][j, i])


def _reduce_sum(inputs: Arrays, _: Shape) -> Callable[..., float]:
    return lambda _i: math.fsum(map(float, inputs["x"]))


def _fp8(byte: int) -> float:
    """e4m3fnuz by its definition: exponent bias 8, no infinities, no negative zero."""
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = (1 + mantissa / 8) * 2.0 ** (exponent - 8) if exponent else mantissa / 8 * 2.0**-7
    return -size if byte & 0x80 else size


def _fp8_gemm(inputs: Arrays, shape: Shape) -> Callable[..., float]:
    m, n, k = shape["m"], shape["n"], shape["k"]
    # The bytes as a kernel finds them: column-major.
    problem = Problem.load("fp8_gemm")
    a, b = (problem.buffer(name).pack(inputs[name]) for name in ("a", "b"))
    scales = {
        name: problem.buffer(name).pack(inputs[name]).view(np.float32) for name in ("a_scale", "b_scale")
    }
    blocks = -(-n // 128)

    def at(i: int, j: int) -> float:
        return math.fsum(
            _fp8(int(a[p * m + i]))
            * float(scales["a_scale"][p // 128 * m + i])
            * _fp8(int(b[p * n + j]))
            * float(scales["b_scale"][p // 128 * blocks + j // 128])
            for p in range(k)
        )

    return at


FORMULAS: dict[str, Callable[[Arrays, Shape], Callable[..., float]]] = {
    "fp8_gemm": _fp8_gemm,
    "matmul": _matmul,
    "reduce_sum": _reduce_sum,
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "transpose": _transpose,
}


@pytest.mark.parametrize("name", list_problems())
def test_a_reference_agrees_with_another_formula(name: str) -> None:
    problem = Problem.load(name)
    shape = problem.shapes["cpu"].tests[2]
    rng = np.random.default_rng(3)
    for distribution in problem.distributions:
        inputs = problem.inputs(rng, distribution, shape)
        formula = FORMULAS[name](inputs, shape)
        for buffer, want in problem.reference(inputs, shape).items():
            for _ in range(8):
                index = tuple(int(rng.integers(extent)) for extent in want.shape)
                got = formula(*index)
                size = float(np.abs(want).max())
                assert want[index] == pytest.approx(got, rel=1e-10, abs=1e-13 * size), (distribution, buffer)


@pytest.mark.parametrize("name", list_problems())
def test_zeros_small_errors_and_missing_parts_do_not_pass(name: str) -> None:
    problem = Problem.load(name)
    shape = problem.shapes["cpu"].tests[-1]
    rng = np.random.default_rng(4)
    for distribution in problem.distributions:
        inputs = problem.inputs(rng, distribution, shape)
        expected = problem.reference(inputs, shape)
        allowed = problem.allowance(expected, inputs, shape)
        for output, want in expected.items():
            assert (np.abs(want) > allowed[output]).mean() > (0.05 if distribution == "sparse" else 0.4)
            assert (0.05 * np.abs(want) >= allowed[output]).any()


def test_the_sum_of_small_integers_must_be_exact() -> None:
    problem = Problem.load("reduce_sum")
    inputs = problem.inputs(np.random.default_rng(1), "integers", {"n": 1000})
    allowed = problem.allowance(problem.reference(inputs, {"n": 1000}), inputs, {"n": 1000})
    assert not allowed["y"].any()


def test_fp8_gemm_has_the_challenge_shapes_and_its_speed_of_light() -> None:
    problem = Problem.load("fp8_gemm")
    shapes = problem.shapes["mi300"].benchmarks
    assert len({tuple(shape.values()) for shape in shapes}) == 18
    # Microseconds published for 2614 Tflop/s and 5.3 TB/s.
    published = {(1024, 1536, 7168): 8.63, (6144, 4608, 7168): 155.30, (1024, 7168, 256): 3.17}
    for (m, n, k), time_us in published.items():
        shape = {"m": m, "n": n, "k": k}
        assert shape in shapes
        bound = max(problem.flops.evaluate(shape) / 2614e6, problem.bytes.evaluate(shape) / 5.3e6)
        assert bound == pytest.approx(time_us, rel=0.002)
