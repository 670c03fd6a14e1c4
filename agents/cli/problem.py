"""``kernel-scientist problem``: what can be computed, and whether a problem folder is sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .app import LazyCommand, LazyGroup
from .output import echo, echo_all, json_option, print_json, remark
from .text import columns, indent, shape_text

if TYPE_CHECKING:
    from kernel_scientist.tools.problem import Problem

__all__ = ["check", "list_command", "new", "problem", "show"]

SOME_FAILED = 6


@click.group(
    cls=LazyGroup,
    lazy={
        "list": LazyCommand("problem:list_command", "List the bundled problems."),
        "show": LazyCommand("problem:show", "Show a problem: buffers, shapes, tolerance, kernels."),
        "check": LazyCommand("problem:check", "Check a problem folder."),
        "new": LazyCommand("problem:new", "Make a problem folder, from a HIP program or a template."),
    },
)
def problem() -> None:
    """List, show, check and make problems.

    PROBLEM is the name of a bundled problem or a folder with a problem.toml.
    """


@click.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """List the bundled problems."""
    from kernel_scientist.tools.problem import Problem, list_problems

    problems = [Problem.load(name) for name in list_problems()]
    if as_json:
        print_json([{"name": one.name, "title": one.title, "kernels": list(one.kernels)} for one in problems])
        return 0
    rows = [(one.name, one.title, ", ".join(one.kernels)) for one in problems]
    echo_all(columns(rows, header=("problem", "what it computes", "starting kernels")))
    return 0


@click.command()
@click.argument("problem")
@json_option
def show(problem: str, as_json: bool) -> int:
    """Show PROBLEM: what it computes, its buffers, shapes, tolerance and starting kernels."""
    from kernel_scientist.tools.problem import Problem

    loaded = Problem.load(problem)
    if as_json:
        print_json(_values(loaded))
        return 0
    echo(f"{loaded.name}: {loaded.title}", "heading")
    echo(indent(loaded.description))
    echo_all(_lines(loaded))
    return 0


def _values(one: Problem) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "description": one.description,
        "folder": str(one.folder),
        "key": one.key,
        "buffers": [
            {
                "name": buffer.name,
                "dtype": buffer.dtype,
                "shape": [item.text for item in buffer.shape],
                "role": buffer.role,
                "order": buffer.order,
            }
            for buffer in one.buffers
        ],
        "scalars": [
            {"name": scalar.name, "dtype": scalar.dtype, "value": scalar.value.text} for scalar in one.scalars
        ],
        "domain": {
            name: {"min": bounds.min, "max": bounds.max, "multiple_of": bounds.multiple_of}
            for name, bounds in one.domain.items()
        },
        "tolerance": {
            "rtol": one.tolerance.rtol.text,
            "atol": one.tolerance.atol.text,
            "magnitude": one.tolerance.magnitude.text,
        },
        "flops": one.flops.text,
        "bytes": one.bytes.text,
        "shapes": {
            name: {
                "tests": [dict(s) for s in shapes.tests],
                "benchmarks": [dict(s) for s in shapes.benchmarks],
            }
            for name, shapes in one.shapes.items()
        },
        "kernels": {name: str(path) for name, path in one.kernels.items()},
    }


def _lines(one: Problem) -> list[str]:
    buffers = [
        (
            buffer.name,
            buffer.role,
            buffer.dtype,
            " x ".join(item.text for item in buffer.shape),
            f"order {buffer.order}",
        )
        for buffer in one.buffers
    ]
    scalars = [
        (scalar.name, scalar.dtype, f"= {scalar.value.text}")
        for scalar in one.scalars
        if scalar.name not in one.domain
    ]
    domain = [
        (
            name,
            f"{bounds.min} to {bounds.max}",
            f"multiples of {bounds.multiple_of}" if bounds.multiple_of > 1 else "",
        )
        for name, bounds in one.domain.items()
    ]
    lines = [
        "",
        "buffers",
        *_indented(buffers),
        *(["scalars", *_indented(scalars)] if scalars else []),
        "domain",
        *_indented(domain),
    ]
    bound = one.tolerance
    lines += [f"tolerance  rtol {bound.rtol.text}, atol {bound.atol.text}, magnitude {bound.magnitude.text}"]
    lines += [f"work       {one.flops.text} flops, {one.bytes.text} bytes"]
    for name, shapes in one.shapes.items():
        lines += [f"shapes for {name}"]
        lines += _indented([("test", shape_text(shape)) for shape in shapes.tests])
        lines += _indented([("benchmark", shape_text(shape)) for shape in shapes.benchmarks])
    return [*lines, "starting kernels", *_indented([(name, str(path)) for name, path in one.kernels.items()])]


def _indented(rows: list[Any]) -> list[str]:
    return [f"  {line}" for line in columns(rows)]


@click.command()
@click.argument("problem")
@json_option
def check(problem: str, as_json: bool) -> int:
    """Check the folder of PROBLEM: its files, its reference, its kernels' plans.

    Exit code 2: problem.toml, reference.py or a kernel cannot be used, and the first reason is said. 6: they
    can be, and something is wrong all the same.
    """
    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.problem_check import check_problem

    loaded = Problem.load(problem)
    findings = [str(finding) for finding in check_problem(loaded)]
    if as_json:
        print_json({"problem": loaded.name, "folder": str(loaded.folder), "findings": findings})
    elif findings:
        echo_all(findings)
        remark(f"{loaded.name}: {len(findings)} finding(s).")
    else:
        echo(f"{loaded.name}: nothing found wrong.")
    return SOME_FAILED if findings else 0


@click.command()
@click.argument("name")
@click.option(
    "--from",
    "program",
    metavar="FILE.hip",
    type=click.Path(path_type=Path),
    help="Propose plan and problem from this program's kernels and launches.",
)
@click.option(
    "--output", metavar="DIR", type=click.Path(path_type=Path), default=".", help="Where the folder goes."
)
@json_option
def new(name: str, program: Path | None, output: Path, as_json: bool) -> int:
    """Make the problem folder NAME: problem.toml, reference.py and a starting kernel.

    With --from it is proposed from a HIP program: device code stays, host code becomes the launch plan, and
    what could not be told from it is marked FILL IN. Without, it is a small problem that works as it stands.
    """
    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.problem_check import check_problem
    from kernel_scientist.tools.program import new_problem

    folder = new_problem(name, output, program)
    findings = check_problem(Problem.load(folder))
    files = sorted(path.name for path in folder.iterdir())
    if as_json:
        print_json({"folder": str(folder), "files": files, "findings": findings})
        return 0
    echo(str(folder))
    for finding in findings:
        remark(finding)
    told = f"{len(findings)} finding(s) to see to" if findings else "it works as it stands"
    remark(f"{', '.join(files)}: {told}; then run 'kernel-scientist problem check {folder}'.")
    return 0
