"""Problem folders from HIP programs: what can be told is there, what cannot is marked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.sandbox.compilation import CodeObject, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.binding import bind
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.policy import policy_violation
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.problem_check import check_problem
from kernel_scientist.tools.program import new_problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets import Target

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Expected:
    """What the proposal of a program must hold."""

    launches: tuple[str, ...]
    inputs: str
    outputs: str
    domain: str
    constants: str = ""
    scratch: str = ""
    marks: tuple[str, ...] = ()
    compiles: bool = True


EXPECTED = {
    "vector_add": Expected(
        ("vector_add [cdiv(n, threads)] [threads] a b c n",), "a(n) b(n)", "c(n)", "n=1048576", "threads"
    ),
    "reduction": Expected(
        (
            "reduce_blocks [min(cdiv(n, BLOCK_SIZE), 1024)] [BLOCK_SIZE] in_ partial n",
            "reduce_final [1] [64] partial out min(cdiv(n, BLOCK_SIZE), 1024)",
        ),
        "in_(n)",
        "out(1)",
        "n=4194304",
        "BLOCK_SIZE",
        "partial",
    ),
    "stencil": Expected(
        ("jacobi [cdiv(NY, BX), cdiv(NX, BY)] [BX, BY] old_grid new_grid NX NY",),
        "",
        "old_grid(NX NY)",
        "NX=512 NY=512",
        "BX BY",
        "new_grid",
        ("change places between rounds", "is copied to the device and back"),
    ),
    "transpose": Expected(
        (
            "transpose<__half, kTile, kRows> [cdiv(columns, kTile), cdiv(rows, kTile)] [kTile, kRows] "
            "in_ out rows columns",
        ),
        "in_(rows columns)",
        "out(rows columns)",
        "columns=1024 rows=2048",
        "kRows kTile",
    ),
    "softmax": Expected(
        ("softmax [rows] [threads] in_ out columns scale",),
        "in_(rows columns)",
        "out(rows columns)",
        "columns=1000 rows=4096",
        "threads",
    ),
    "histogram": Expected(
        ("histogram [240] [NUM_BINS] data bins n",),
        "data(n)",
        "bins(256)",
        "n=65536",
        "NUM_BINS",
        marks=("the values of 'n'", "fills 'bins'"),
    ),
    "steps": Expected(
        ("scan::add_step [cdiv(n, 128)] [128] source sums n step",),
        "source(n)",
        "sums(n)",
        "n=65536 passes=16",
    ),
    "struct_args": Expected(
        ("scale [1] [256] 1 x y",),
        "x(1)",
        "y(1)",
        "unit=1",
        marks=(
            "'p' is a Params",
            "the grid cannot be told",
            "the size of 'x'",
            "'y' is taken for the output",
        ),
        compiles=False,
    ),
    "messy_warmup": Expected(
        ("smooth [cdiv(n, TPB)] [TPB] dst src n",),
        "src(n)",
        "dst(n)",
        "n=65536",
        "TPB",
        marks=("stands again in line 51",),
    ),
    "in_place": Expected(
        ("square [cdiv(count, 192)] [192] values count - 8",),
        "",
        "values(1)",
        "count=5000",
        marks=("give the kernel an offset", "where 'values' is allocated"),
    ),
    "library_calls": Expected(
        ("lookup<64> [((n - 1) // 64) + 1] [64] keys found n",),
        "keys(1)",
        "found(1)",
        "n=65536",
        marks=("hipblasSaxpy", "HIP_SYMBOL(table)", "the values of 'n'"),
    ),
    "matmul_variants": Expected(
        (
            "matmul<Layout::kRow> [(n // 16) + ((n % 16) != 0), (m // 16) + ((m % 16) != 0)] [16, 16] "
            "a b c m n k 0.0",
        ),
        "a(m k) b(k n)",
        "c(m n)",
        "k=128 m=256 n=300",
    ),
}


def make(name: str, folder: Path) -> Problem:
    return Problem.load(new_problem(name, folder, PROGRAMS / f"{name}.hip"))


def buffers(problem: Problem, role: str) -> str:
    found = (one for one in problem.buffers if one.role == role)
    return " ".join(f"{one.name}({' '.join(extent.text for extent in one.shape)})" for one in found)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_proposal_holds_what_the_program_tells(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    problem = make(name, tmp_path)
    plan = Kernel.load(problem.default_kernel).plan
    launches = tuple(
        f"{one.kernel} [{', '.join(e.text for e in one.grid)}] [{', '.join(e.text for e in one.block)}] "
        f"{' '.join(e.text for e in one.args)}"
        for one in plan.launches
    )
    assert launches == expected.launches
    assert buffers(problem, "input") == expected.inputs
    assert buffers(problem, "output") == expected.outputs
    assert " ".join(sorted(f"{key}={one.max}" for key, one in problem.domain.items())) == expected.domain
    assert " ".join(sorted(plan.constants)) == expected.constants
    assert " ".join(one.name for one in plan.scratch) == expected.scratch


@pytest.mark.parametrize("name", EXPECTED)
def test_what_could_not_be_told_is_marked_and_checked_for(name: str, tmp_path: Path) -> None:
    findings = check_problem(make(name, tmp_path))
    assert findings
    assert all("still to be filled in" in one for one in findings)
    for mark in (*EXPECTED[name].marks, "in NumPy, as exactly as can be", "how far a result may be off"):
        assert any(mark in one for one in findings), mark


@pytest.mark.parametrize("name", EXPECTED)
def test_device_code_stays_and_host_code_goes(name: str, tmp_path: Path) -> None:
    text = make(name, tmp_path).default_kernel.read_text()
    code = text.split("*/", 1)[1]
    assert policy_violation(text) is None
    assert "main(" not in code
    assert "<<<" not in code
    assert "hipMalloc" not in code
    assert "std::" not in code


@pytest.mark.parametrize("name", [name for name, one in EXPECTED.items() if one.compiles])
def test_the_plan_and_the_code_fit_each_other(name: str, tmp_path: Path) -> None:
    problem = make(name, tmp_path)
    kernel = Kernel.load(problem.default_kernel)
    plan = bind(kernel, problem, problem.shapes["cpu"].benchmarks[0])
    built = open_compiler("cpu").compile(CompileRequest(kernel.source, plan.entries, plan.constants))
    assert isinstance(built, CodeObject), built.message


def test_a_repeated_launch_counts_its_steps(tmp_path: Path) -> None:
    plan = Kernel.load(make("steps", tmp_path).default_kernel).plan
    assert plan.launches[0].repeat.text == "passes"


def test_dynamic_lds_and_scalars_are_found(tmp_path: Path) -> None:
    problem = make("softmax", tmp_path)
    assert Kernel.load(problem.default_kernel).plan.launches[0].lds.text == "threads * 4"
    assert [(one.name, one.value.text) for one in problem.scalars if one.name == "scale"] == [
        ("scale", "0.125")
    ]


def test_once_filled_in_the_judge_takes_it(tmp_path: Path, target: Target, quick: JudgeSettings) -> None:
    folder = make("vector_add", tmp_path).folder
    for file in (folder / "problem.toml", folder / "reference.py"):
        lines = [line for line in file.read_text().splitlines() if "FILL IN" not in line]
        text = "\n".join(lines).replace("flops = 0", 'flops = "n"').replace("1e-5", "1e-6")
        start = text.find("    raise NotImplementedError")
        file.write_text(text if start < 0 else text[:start] + '    return {"c": a.astype(np.float64) + b}\n')
    problem = Problem.load(folder)
    assert check_problem(problem) == [] and problem.title == folder.name
    kernel = Kernel.load(problem.default_kernel)
    evaluation = Judge(problem, target, kernel, settings=quick).evaluate(kernel)
    assert evaluation.accepted, evaluation.message


def test_the_template_works_as_it_stands(tmp_path: Path, target: Target, quick: JudgeSettings) -> None:
    problem = Problem.load(new_problem("mine", tmp_path))
    assert check_problem(problem) == []
    assert problem.title == "mine"
    kernel = Kernel.load(problem.default_kernel)
    evaluation = Judge(problem, target, kernel, settings=quick).evaluate(kernel)
    assert evaluation.accepted, evaluation.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int main() { return 0; }",
        "__global__ void f(float* x) { x[0] = 1; }",
        "}}} <<< ((( unbalanced",
        "\x00\x01",
    ],
    ids=["empty", "no kernel", "no launch", "no program", "binary"],
)
def test_a_file_without_launches_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.hip").write_text(text)
    with pytest.raises(UsageError, match="launches no kernel"):
        new_problem("x", tmp_path / "out", tmp_path / "one.hip")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../up", "a b", "", ".hidden", "-x"])
def test_a_name_that_is_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot name a problem"):
        new_problem(name, tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    new_problem("mine", tmp_path)
    with pytest.raises(UsageError, match="already there"):
        new_problem("mine", tmp_path)


@pytest.mark.parametrize("cut", range(100, 1000, 90))
def test_a_damaged_program_gives_a_folder_or_a_sentence(cut: int, tmp_path: Path) -> None:
    text = (PROGRAMS / "messy_warmup.hip").read_text()
    (tmp_path / "one.hip").write_text(text[:cut] + text[cut + 25 :])
    try:
        folder = new_problem("x", tmp_path, tmp_path / "one.hip")
    except UsageError as error:
        assert "launches no kernel" in str(error)
    else:
        assert check_problem(Problem.load(folder))


HOST = (
    "__global__ void add(const float* a, float* b, int n) { b[0] = a[0] + n; }\n"
    "int main() { int n = 1000; %s float* a; float* b; hipMalloc(&a, n * 4); hipMalloc(&b, n * 4);\n"
    "  add<<<%s, 256>>>(a, b, n); return 0; }\n"
)
DOUBLED = "int v0 = n;" + "".join(f" int v{i} = v{i - 1} + v{i - 1};" for i in range(1, 40))


@pytest.mark.parametrize(
    ("before", "grid"),
    [
        ("", "(" * 20_000 + "n" + ")" * 20_000),
        ("", "n" + " / 2" * 60),
        ("", "(" * 60 + "n" + " / 2)" * 60),
        ("", "*".join(["n"] * 3000)),
        ("", "9" * 5000),
        ("", "1e999"),
        (DOUBLED, "v39"),
    ],
    ids=["parentheses", "divisions", "divided pairs", "product", "digits", "infinite", "doubled"],
)
def test_an_expression_beyond_measure_is_marked_and_not_followed(
    before: str, grid: str, tmp_path: Path
) -> None:
    (tmp_path / "one.hip").write_text(HOST % (before, grid))
    folder = new_problem("x", tmp_path, tmp_path / "one.hip")
    assert check_problem(Problem.load(folder))


def test_a_program_too_large_is_refused_with_the_size_it_may_have(tmp_path: Path) -> None:
    (tmp_path / "one.hip").write_bytes(b"\n" * (2**20 + 1))
    with pytest.raises(UsageError, match="it has 1048577 bytes or more, and may have 1048576"):
        new_problem("x", tmp_path / "out", tmp_path / "one.hip")
