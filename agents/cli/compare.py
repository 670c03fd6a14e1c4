"""``kernel-scientist compare``: two kernels measured side by side, or two recorded runs laid side by side."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_scientist.sandbox.errors import UsageError

from .closing import meaning_of
from .judged import how_compared
from .output import echo, echo_all, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .plot import interval_plot
from .side_by_side import run_values, runs_table
from .text import columns, one_line, percent, quote, shape_text, time_text

if TYPE_CHECKING:
    from kernel_scientist.tools.evaluation import Comparison, Evaluation, Interval
    from kernel_scientist.tools.problem import Problem

__all__ = ["compare"]

NOT_ACCEPTED = 6
_NARROWEST, _WIDEST = 40, 100


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--problem", metavar="PROBLEM", help="What the two kernels compute: a bundled name, or a folder."
)
@click.option("--target", default="auto", show_default=True, metavar="NAME", help="Where they are measured.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the judge's draws.")
@click.option("--no-sandbox", is_flag=True, help="Go on where this machine has no cage for kernels.")
@runs_dir_option
@json_option
def compare(
    a: str,
    b: str,
    problem: str | None,
    target: str,
    seed: int | None,
    no_sandbox: bool,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Measure two kernels side by side, or lay two runs side by side.

    With --problem, A and B are kernels (files, or names of the problem's starting kernels): both are checked
    and then timed in fresh pairs of the confirm tier. Without it, A and B are runs (`last`, an id, the
    beginning of one, or a folder); nothing is measured anew.

    Exit code 2: a launch plan is wrong. 6: one of the kernels is not accepted.
    """
    if problem is None:
        return _runs(a, b, resolve_runs_dir(runs_dir), as_json)
    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.targets import resolve_together

    problem, target = resolve_together(problem, target)
    loaded = Problem.load(problem)
    paths = tuple(_kernel_path(name, loaded) for name in (a, b))
    comparison = _measure(loaded, paths[0], paths[1], target, seed, no_sandbox)
    if as_json:
        names = {"a": str(paths[0]), "b": str(paths[1])}
        print_json({"kernels": names, "problem": loaded.name, "comparison": comparison.to_dict()})
    else:
        _print(loaded, paths, comparison)
    return 0 if comparison.a.accepted and comparison.b.accepted else NOT_ACCEPTED


def _kernel_path(name: str, problem: Problem) -> Path:
    """A file of that name, else the problem's own kernel of that name."""
    path = Path(name)
    return path if path.exists() or name not in problem.kernels else problem.kernels[name]


def _measure(
    problem: Problem, a: Path, b: Path, target: str, seed: int | None, no_sandbox: bool
) -> Comparison:
    from kernel_scientist.tools.errors import PlanError
    from kernel_scientist.tools.evaluation import Verdict
    from kernel_scientist.tools.judge import Judge, in_users_file, require_accepted
    from kernel_scientist.tools.kernel import Kernel
    from kernel_scientist.tools.targets import resolve_target

    try:
        kernels = Kernel.load(a), Kernel.load(b)
    except PlanError as error:
        raise error.as_usage_error() from None
    judge = Judge(problem, resolve_target(target, allow_no_sandbox=no_sandbox), kernels[0], seed=seed)
    comparison = judge.compare(*kernels)
    # As in `bench`: a plan that cannot be launched is a mistake in the file.
    for path, evaluation in ((a, comparison.a), (b, comparison.b)):
        if evaluation.verdict in (Verdict.INVALID_PLAN, Verdict.LAUNCH_ERROR):
            require_accepted(evaluation, path)
    return replace(comparison, a=in_users_file(comparison.a, a), b=in_users_file(comparison.b, b))


def _print(problem: Problem, paths: tuple[Path, ...], comparison: Comparison) -> None:
    a, b = comparison.a, comparison.b
    echo(f"{problem.name}: A = {paths[0]}, B = {paths[1]}")
    echo(f"on {b.device}, sandbox {b.sandbox}")
    if not comparison.timings:
        for name, evaluation in (("A", a), ("B", b)):
            echo_all(_not_measured(name, evaluation))
        echo(one_line(comparison.claim), "bad")
        return
    low, high = comparison.speedup.low, comparison.speedup.high
    echo(one_line(comparison.claim), "good" if low > 1.0 or high < 1.0 else "")
    echo_all(["", *_table(comparison), "", *_plot(comparison), ""])
    for sentence in (*_method(comparison), *dict.fromkeys((*a.notes, *b.notes))):
        echo_all(textwrap.wrap(one_line(sentence), _width(), subsequent_indent="  "))
    for line in meaning_of(b.target):
        remark(line, "dim")


def _not_measured(name: str, evaluation: Evaluation) -> list[str]:
    if evaluation.accepted:
        return [f"{name}: right, not timed"]
    return [
        f"{name}: {evaluation.verdict.value}",
        quote(evaluation.message),
    ]


def _table(comparison: Comparison) -> list[str]:
    level = comparison.speedup.level
    rows = [
        (
            shape_text(one.shape),
            time_text(one.baseline_us),
            time_text(one.time_us),
            _ratio(one.speedup, level),
            str(one.batches),
            percent(one.noise) if one.noise is not None else "",
        )
        for one in comparison.timings
    ]
    overall = ("geometric mean", "", "", _ratio(comparison.speedup, level), "", "")
    header = ("shape", "A", "B", f"speed-up of B ({level * 100:g} %)", "pairs", "noise")
    return columns([*rows, overall], header=header)


def _ratio(one: Interval | None, level: float) -> str:
    """A ratio with its interval, and its level where that is not the column's."""
    if one is None:
        return "not measured"
    at = "" if one.level == level else f" at {one.level * 100:.3g} %"
    return f"{one.value:.3f}x ({one.low:.3f}x to {one.high:.3f}x{at})"


def _plot(comparison: Comparison) -> list[str]:
    rows = [(shape_text(one.shape), one.speedup) for one in comparison.timings]
    measured = [(label, one) for label, one in rows if one is not None]
    title = "speed-up of B over A, logarithmic (right of 1x: B is faster)"
    return [title, *interval_plot([*measured, ("overall", comparison.speedup)], width=_width())]


def _width() -> int:
    terminal = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
    return min(max(terminal, _NARROWEST), _WIDEST)


def _method(comparison: Comparison) -> list[str]:
    """How the figures came about, for whoever wants to judge them."""
    pairs = sorted({one.batches for one in comparison.timings})
    count = f"{pairs[0]}" if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
    method = comparison.b.method or "no account of it"
    if how_compared(comparison.b.target) != "in fresh pairs":
        return [f"not measured here: {method}"]
    lines = [f"measured in {count} fresh pairs a shape (confirm tier): {method}"]
    if any(one.noise is not None for one in comparison.timings):
        lines.append("noise: what a pair of batches of one and the same kernel differs by on this machine")
    return lines


def _runs(a: str, b: str, runs_dir: Path, as_json: bool) -> int:
    from kernel_scientist.agents import Run

    for name in (a, b):
        if Path(name).is_file():
            raise UsageError(f"{name} is a file; say with --problem what the kernels A and B compute.")
    runs = [Run.open(name, runs_dir=runs_dir) for name in (a, b)]
    values = [run_values(run) for run in runs]
    if as_json:
        print_json({"a": values[0], "b": values[1], "measured_anew": False})
        return 0
    echo_all(runs_table(values))
    echo()
    echo("From the runs' own records: nothing was measured anew, and each speed-up is over its own start.")
    if values[0]["same_as"] != values[1]["same_as"]:
        echo("The runs differ in problem, starting kernel or device, so their speed-ups cannot be compared.")
    return 0
