"""Problem folders: what is read, what is drawn, and one sentence for each way to get one wrong."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.errors import ProblemError
from kernel_scientist.tools.problem import BUNDLED, Problem, list_problems
from kernel_scientist.tools.problem_check import check_problem

PROBLEM = """title = "Scaled rows"
description = "y = s * x, summed along rows into t; x is column-major."
kernels = ["rows.hip"]
distributions = ["normal", "uniform"]

[inputs]
x = { dtype = "float32", shape = ["rows", "columns"], order = "F" }

[outputs]
y = { dtype = "bfloat16", shape = ["rows", "columns"] }
count = { dtype = "int32", shape = ["cdiv(rows, 2)"] }

[scalars]
s = { dtype = "float32", value = "1 / rows" }

[domain]
rows = { min = 2, max = 1000, multiple_of = 2 }
columns = { min = 1, max = 500 }

[tolerance]
rtol = 0.01
atol = "1e-6 * columns"
magnitude = "1e-3"

[speed_of_light]
flops = "2 * rows * columns"
bytes = "6 * rows * columns"
arithmetic = "float32"

[shapes.cpu]
tests = [{ rows = 2, columns = 3 }, { rows = 8, columns = 5 }]
benchmarks = [{ rows = 100, columns = 50 }]
"""
REFERENCE = """import numpy as np

def inputs(rng, distribution, rows, columns):
    draw = rng.random if distribution == "uniform" else rng.standard_normal
    return {"x": draw((rows, columns)).astype(np.float32)}

def reference(x, s, rows):
    return {"y": s * x, "count": np.full(rows // 2, 7, np.int32)}

def magnitude(x):
    return {"y": np.abs(x), "count": np.zeros(x.shape[0] // 2, np.int32)}
"""
KERNEL = """/* plan
[[launch]]
kernel = "f"
grid = 1
block = 64
args = ["x", "y", "count", "s"]
*/
"""
SHAPE = {"rows": 8, "columns": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "scaled"
    path.mkdir()
    (path / "problem.toml").write_text(PROBLEM, encoding="utf-8")
    (path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    (path / "rows.hip").write_text(KERNEL, encoding="utf-8")
    return path


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_folder_is_read_as_written(folder: Path) -> None:
    problem = Problem.load(folder)
    assert problem.name == "scaled"
    assert problem.dimensions == ("rows", "columns")
    assert [(buffer.name, buffer.role, buffer.order) for buffer in problem.buffers] == [
        ("x", "input", "F"),
        ("y", "output", "C"),
        ("count", "output", "C"),
    ]
    assert problem.buffer("count").extent(SHAPE) == (4,)
    assert problem.buffer("y").nbytes(SHAPE) == 80
    assert problem.scalar_values(SHAPE) == {"rows": 8, "columns": 5, "s": 0.125}
    assert problem.flops.evaluate(SHAPE) == 80
    assert problem.kernel_file("rows") == problem.default_kernel == folder.resolve() / "rows.hip"
    assert problem.shapes["cpu"].benchmarks == ({"rows": 100, "columns": 50},)
    assert Problem.load(folder / "problem.toml").key == problem.key
    with pytest.raises(UsageError, match=r"no kernel 'row'; did you mean 'rows'"):
        problem.kernel_file("row")


def test_inputs_expected_outputs_and_tolerance(folder: Path) -> None:
    problem = Problem.load(folder)
    inputs = problem.inputs(np.random.default_rng(1), "normal", SHAPE)
    expected = problem.reference(inputs, SHAPE)
    assert expected["y"].dtype == np.float64
    assert expected["count"].dtype == np.int32
    np.testing.assert_allclose(expected["y"], inputs["x"] / 8)
    allowed = problem.allowance(expected, inputs, SHAPE)
    wanted = 5e-6 + 0.01 * np.abs(expected["y"]) + 1e-3 * np.abs(inputs["x"].astype(np.float64))
    np.testing.assert_allclose(allowed["y"], wanted)
    assert not allowed["count"].any()


def test_buffers_lie_in_memory_in_their_order(folder: Path) -> None:
    problem = Problem.load(folder)
    x = problem.buffer("x")
    array = np.arange(40, dtype=np.float32).reshape(8, 5)
    memory = x.pack(array)
    assert memory.dtype == np.uint8
    assert list(memory.view(np.float32)[:3]) == [0.0, 5.0, 10.0]
    view = x.view(memoryview(bytearray(memory.tobytes() + b"slack")), SHAPE)
    np.testing.assert_array_equal(view, array)
    y = problem.buffer("y")
    assert list(y.pack(array)[2:4]) == [0x80, 0x3F]


def test_the_key_follows_problem_and_reference_but_not_the_kernels(folder: Path) -> None:
    key = Problem.load(folder).key
    (folder / "rows.hip").write_text(KERNEL + "// changed", encoding="utf-8")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert Problem.load(folder).key == key
    rewrite(folder / "reference.py", "7", "8")
    assert Problem.load(folder).key != key


def test_held_out_shapes_keep_to_the_domain_and_are_new(folder: Path) -> None:
    problem = Problem.load(folder)
    rng = np.random.default_rng(5)
    drawn = [problem.random_shape(rng, "cpu", 20_000) for _ in range(200)]
    assert all(shape["rows"] % 2 == 0 and 2 <= shape["rows"] <= 1000 for shape in drawn)
    assert all(1 <= shape["columns"] <= 500 for shape in drawn)
    assert all(sum(b.elements(shape) for b in problem.buffers) <= 20_000 for shape in drawn)
    listed = [dict(shape) for shape in (*problem.shapes["cpu"].tests, *problem.shapes["cpu"].benchmarks)]
    assert not any(shape in listed for shape in drawn)
    assert len({tuple(shape.items()) for shape in drawn}) > 100
    assert any(shape["columns"] % 2 for shape in drawn)
    assert problem.random_shape(rng, "cpu", 1) == {"rows": 2, "columns": 1}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("title =", "titel =", 1, "unknown key 'titel'; did you mean 'title'?"),
        ('title = "Scaled rows"\n', "", None, "the key 'title' is missing"),
        ("[tolerance]", "[tolerences]", 20, "unknown key 'tolerences'; did you mean 'tolerance'?"),
        ("rtol", "rtoll", 21, "unknown key 'rtoll'; did you mean 'rtol'?"),
        ("rtol = 0.01", "rtol = ", 21, "is not TOML"),
        ("rtol = 0.01", 'rtol = "rows.size"', 21, "not arithmetic"),
        ('atol = "1e-6 * columns"', 'atol = "1e-6 * depth"', 22, "uses 'depth', not a dimension"),
        ("order =", "ordre =", 7, "unknown key 'ordre'; did you mean 'order'?"),
        ('order = "F"', 'order = "K"', 7, "'C' or 'F'"),
        ('"float32", shape', '"flout32", shape', 7, "did you mean 'float32'?"),
        ('"rows", "columns"], order', '"rows", "width"], order', 7, "uses 'width', not a dimension"),
        ('value = "1 / rows"', 'value = "1 / row"', 14, "did you mean 'rows'?"),
        (
            "columns = { min = 1, max = 500 }",
            "columns = { min = 9, max = 5 }",
            18,
            "no multiple of 1 lies between",
        ),
        ("rows = { min = 2", "rows = { min = 0", 17, "'domain.rows.min': must be at least 1"),
        ("[shapes.cpu]", "[shapes.gpu]", 30, "must be 'cpu', 'mi300' or"),
        ("{ rows = 8, columns = 5 }", "{ rows = 7, columns = 5 }", 31, "rows = 7 is not a multiple of 2"),
        ("{ rows = 8, columns = 5 }", "{ rows = 8 }", 31, "lacks the dimension 'columns'"),
        (
            "{ rows = 100, columns = 50 }",
            "{ rows = 1002, columns = 50 }",
            32,
            "outside its domain of 2 to 1000",
        ),
        ("s = {", "x = {", 14, "'x' is in [inputs] too; rename one of them"),
        ("s = {", "min = {", 14, "cannot be a name"),
        ('["rows.hip"]', '["../rows.hip"]', 3, "is not the name of a .hip file"),
        ('["rows.hip"]', '["other.hip"]', None, "lists the kernel 'other.hip', which is not in the folder"),
        ('flops = "2 *', 'flops = "2 **', 26, "cannot be parsed"),
        ("rows = { min = 2", "rows = { min = true", 17, "write a whole number"),
        ('title = "Scaled rows"', "title = 3", 1, "'title': write a text in quotes"),
        ('["normal", "uniform"]', "[]", 4, "'distributions': is empty; write a list, distributions = [...]"),
        ("[inputs]\n", "[[inputs]]\n", 6, "'inputs': write a table, [inputs]"),
        ('["rows", "columns"], order', '["1 // (rows - 2)"], order', 7, "'1 // (rows - 2)' divides"),
        ('["rows", "columns"], order', '["rows - 5"], order', 7, "'x': 'rows - 5' is -3 for rows = 2"),
        ('["rows", "columns"], order', '["rows / 4"], order', 7, "is 0.5, not an integer"),
        ('["rows", "columns"], order', '["rows", "2 ** 50"], order', 7, "more bytes than any device has"),
        ('"float32", value = "1 / rows"', '"int8", value = 1000', 14, "scalar 's': 1000 does not fit int8"),
        ('"float32", value = "1 / rows"', '"int32", value = "1 / rows"', 14, "0.5 does not fit int32"),
        ('value = "1 / rows"', 'value = "1 / (rows - 8)"', 14, "divides by zero for rows = 8"),
        ("rtol = 0.01", 'rtol = "1 / (rows - 8)"', 21, "tolerance.rtol: '1 / (rows - 8)' divides by zero"),
    ],
)
def test_a_mistake_in_problem_toml_is_named_with_its_line(
    folder: Path, old: str, new: str, line: int | None, message: str
) -> None:
    rewrite(folder / "problem.toml", old, new)
    if new == 'flops = "2 **':
        rewrite(folder / "problem.toml", "2 ** rows", "2 * * rows")
    with pytest.raises(ProblemError) as caught:
        Problem.load(folder)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(str(folder.resolve() / "problem.toml"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("import numpy as np", "import numpy as np\nimport no_such_module", 2, "ModuleNotFoundError"),
        ("import numpy as np", "import numpy as np\n)", 2, "is not Python"),
        ("import numpy as np", "import numpy as np\nraise SystemExit(0)", 2, "raised SystemExit"),
        ("def inputs", "def entries", None, "must define the function 'inputs'"),
        ("draw = rng", "1 / 0; draw = rng", 4, "inputs() raised ZeroDivisionError: division by zero"),
        ("rows, columns):", "row, column):", None, "inputs() raised TypeError"),
        (".astype(np.float32)}", "}", 3, "inputs() returned 'x' of float64, not float32"),
        (
            "(rows, columns)).as",
            "(columns, rows)).as",
            3,
            "inputs() returned 'x' of shape (5, 8), not (8, 5)",
        ),
        ('{"x": draw', '{"z": draw', 3, "inputs() must return the arrays x, not z"),
        ('return {"y": s * x', 'return (s * x)\n    return {"y": s * x', 7, "must return a dict of arrays"),
        ('{"y": s * x, ', "{", 7, "reference() must return the arrays y, count, not count"),
        ("7, np.int32", "7, np.int64", 7, "returned 'count' of int64, not int32"),
        ("s * x", "s * x.T", 7, "returned 'y' of shape (5, 8), not (8, 5)"),
        ("s * x", "scale * x", 8, "reference() raised NameError"),
        ("def magnitude", "def size", None, "must define the function 'magnitude'"),
        ("s * x", "s * x.astype(complex)", 7, "returned 'y' of complex128, not of real numbers"),
        ("s * x", "x.astype(object)", 7, "returned 'y' of object, not of real numbers"),
        ("import numpy as np", "import numpy as np\nopen('/no/such')", 2, "loading it raised FileNotFound"),
        ('    return {"y', '    raise KeyboardInterrupt\n    return {"y', 8, "raised KeyboardInterrupt"),
        (
            '    return {"y',
            "    raise GeneratorExit('a\\nb')\n    return {\"y",
            8,
            "raised GeneratorExit: a b",
        ),
    ],
)
def test_a_mistake_in_reference_py_is_named_with_its_line(
    folder: Path, old: str, new: str, line: int | None, message: str
) -> None:
    rewrite(folder / "reference.py", old, new)
    problem = Problem.load(folder)
    with pytest.raises(ProblemError) as caught:
        inputs = problem.inputs(np.random.default_rng(1), "normal", SHAPE)
        problem.allowance(problem.reference(inputs, SHAPE), inputs, SHAPE)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(str(folder.resolve() / "reference.py"))


def test_ctrl_c_in_a_reference_is_the_users(folder: Path) -> None:
    pressed = "    import signal; signal.raise_signal(signal.SIGINT)\n    draw ="
    rewrite(folder / "reference.py", "    draw =", pressed)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Problem.load(folder).inputs(np.random.default_rng(1), "normal", SHAPE)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_formula_without_a_value_for_a_shape_that_nobody_listed_is_the_problems_fault(folder: Path) -> None:
    rewrite(folder / "problem.toml", "cdiv(rows, 2)", "cdiv(rows, 2 * (rows < 101))")
    problem = Problem.load(folder)
    with pytest.raises(ProblemError, match=r"toml, line 11: shape of 'count': .* by zero for rows = 102"):
        problem.buffer("count").nbytes({"rows": 102, "columns": 1})


@pytest.mark.parametrize("file", ["problem.toml", "reference.py"])
def test_only_regular_files_of_a_usable_size_are_read(folder: Path, file: str) -> None:
    def use() -> None:
        Problem.load(folder).inputs(np.random.default_rng(1), "normal", SHAPE)

    (folder / file).unlink()
    (folder / file).touch()
    os.truncate(folder / file, 2**40)
    with pytest.raises(ProblemError, match="it has 1099511627776 bytes or more"):
        use()
    (folder / file).unlink()
    os.mkfifo(folder / file)
    with pytest.raises(UsageError, match=r"has no problem\.toml|not a regular file"):
        use()


def test_using_a_problem_writes_nothing_into_its_folder(folder: Path) -> None:
    before = sorted(path.name for path in folder.rglob("*"))
    problem = Problem.load(folder)
    problem.inputs(np.random.default_rng(1), "normal", SHAPE)
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_what_a_reference_prints_stays_out_of_the_results(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(folder / "reference.py", "import numpy as np", "import numpy as np\nprint('loading')")
    rewrite(folder / "reference.py", "    draw =", "    print('drawing')\n    draw =")
    Problem.load(folder).inputs(np.random.default_rng(1), "normal", SHAPE)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "loading\ndrawing\n"


def test_a_missing_problem_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no problem 'matmull'; did you mean 'matmul'\?"):
        Problem.load("matmull")
    with pytest.raises(UsageError, match=r"has no problem\.toml"):
        Problem.load(tmp_path)
    with pytest.raises(UsageError, match="no problem"):
        Problem.load(tmp_path / "nowhere")
    (tmp_path / "problem.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(ProblemError, match="is not UTF-8"):
        Problem.load(tmp_path)


def test_a_copied_bundled_problem_works_from_any_folder(tmp_path: Path) -> None:
    copy = tmp_path / "mine"
    shutil.copytree(BUNDLED / "matmul", copy)
    assert Problem.load(copy).key == Problem.load("matmul").key
    assert Problem.load(str(copy)).name == "mine"
    assert "matmul" in list_problems()


def test_a_sound_problem_has_no_findings(folder: Path) -> None:
    assert check_problem(Problem.load(folder)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "finding"),
    [
        ("problem.toml", "rtol = 0.01", "rtol = 2", "zeros would pass"),
        ("problem.toml", "rtol = 0.01", "rtol = -1", "the tolerance is negative"),
        ("problem.toml", "6 * rows * columns", "rows - rows", "speed_of_light.bytes is 0"),
        ("problem.toml", "6 * rows * columns", "rows // (rows - 8)", "divides by zero"),
        ("reference.py", "s * x", "x / 0 * x", "not finite"),
        ("reference.py", "rng.standard_normal", "np.ones", "same arrays for different rngs"),
        (
            "reference.py",
            "draw = ",
            "rng = np.random.default_rng(); draw = ",
            "different arrays for the same rng",
        ),
        ("rows.hip", "block = 64", "block = 2048", "line 5: a block of 2048 threads"),
        ("rows.hip", '"y", ', "", "no launch is given the output 'y'"),
        ("rows.hip", "[[launch]]", "[[lanch]]", "did you mean 'launch'?"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_checking_a_problem_finds_what_its_keys_do_not_show(
    folder: Path, file: str, old: str, new: str, finding: str
) -> None:
    rewrite(folder / file, old, new)
    findings = check_problem(Problem.load(folder))
    assert any(finding in text for text in findings), findings
