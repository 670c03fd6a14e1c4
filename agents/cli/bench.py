"""``kernel-scientist bench``: the judge alone, without agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import TypeAdapter

from .closing import meaning_of, resources_title, times_title
from .judged import resource_lines, timing_lines, verdict_line
from .output import echo, echo_all, json_option, print_json, remark
from .text import one_line, quote

if TYPE_CHECKING:
    from kernel_scientist.tools.evaluation import Evaluation
    from kernel_scientist.tools.problem import Problem

__all__ = ["bench"]

NOT_ACCEPTED = 6


@click.command()
@click.argument("kernel")
@click.option(
    "--problem",
    metavar="PROBLEM",
    help="A bundled problem's name, or a problem folder; not needed with a target recorded:FILE.",
)
@click.option(
    "--target",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Where it is judged: auto, mi300, mi300-warm, cpu, ssh://user@host, recorded:FILE.",
)
@click.option(
    "--baseline", metavar="FILE", help="Compare with this kernel instead of the problem's starting kernel."
)
@click.option(
    "--tier",
    type=click.Choice(["screen", "confirm"]),
    default="screen",
    show_default=True,
    help="How long to measure: screen takes seconds, confirm up to 20 s a shape.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the judge's draws.")
@click.option("--no-sandbox", is_flag=True, help="Go on where this machine has no cage for kernels.")
@json_option
def bench(
    kernel: str,
    problem: str | None,
    target: str,
    baseline: str | None,
    tier: str,
    seed: int | None,
    no_sandbox: bool,
    as_json: bool,
) -> int:
    """Have the judge check and time KERNEL, without agents.

    KERNEL is a file, or the name of one of the problem's starting kernels. Exit code 0: accepted. 2: its
    launch plan is wrong. 6: not accepted.
    """
    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.targets import resolve_together

    problem, target = resolve_together(problem, target)
    loaded = Problem.load(problem)
    path = _kernel_path(kernel, loaded)
    evaluation = _judge(loaded, path, target, baseline, tier, seed, no_sandbox)
    if as_json:
        values: dict[str, Any] = TypeAdapter(type(evaluation)).dump_python(evaluation, mode="json")
        print_json({"kernel": str(path), "problem": loaded.name, "evaluation": values})
    else:
        _print(path, evaluation)
    return 0 if evaluation.accepted else NOT_ACCEPTED


def _kernel_path(kernel: str, problem: Problem) -> Path:
    """A file of that name, else the problem's own kernel of that name."""
    path = Path(kernel)
    if path.exists() or kernel not in problem.kernels:
        return path
    return problem.kernels[kernel]


def _judge(
    problem: Problem,
    path: Path,
    target: str,
    baseline: str | None,
    tier: str,
    seed: int | None,
    no_sandbox: bool,
) -> Evaluation:
    from kernel_scientist.tools.errors import PlanError
    from kernel_scientist.tools.evaluation import Verdict
    from kernel_scientist.tools.judge import Judge, in_users_file, require_accepted
    from kernel_scientist.tools.kernel import Kernel
    from kernel_scientist.tools.targets import resolve_target

    try:
        kernel = Kernel.load(path)
        against = Kernel.load(_kernel_path(baseline, problem) if baseline else problem.default_kernel)
    except PlanError as error:
        raise error.as_usage_error() from None
    judge = Judge(problem, resolve_target(target, allow_no_sandbox=no_sandbox), against, seed=seed)
    evaluation = judge.evaluate(kernel, tier="confirm" if tier == "confirm" else "screen")
    # A plan that cannot be launched is a mistake in the file; what comes later is the kernel's failure.
    if evaluation.verdict in (Verdict.INVALID_PLAN, Verdict.LAUNCH_ERROR):
        require_accepted(evaluation, path)
    return in_users_file(evaluation, path)


def _print(path: Path, evaluation: Evaluation) -> None:
    style = "good" if evaluation.accepted else "bad"
    echo(f"{path}: {verdict_line(evaluation)}", style)
    if not evaluation.accepted:
        echo(quote(evaluation.message))
    echo(f"on {evaluation.device}, sandbox {evaluation.sandbox}")
    for check in evaluation.checks:
        echo(f"  {'passed' if check.passed else 'FAILED'}  {one_line(f'{check.name}: {check.detail}', 500)}")
    if evaluation.timings:
        echo_all(
            ["", times_title(evaluation.target), *(f"  {line}" for line in timing_lines(evaluation.timings))]
        )
    echo_all(["", resources_title(evaluation.target)])
    echo_all(f"  {line}" for line in resource_lines([("gfx942", evaluation)]))
    echo_all(one_line(note) for note in evaluation.notes)
    spent = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in evaluation.seconds.items())
    if spent:
        echo(f"time from source to verdict: {spent}")
    if evaluation.accepted:
        for line in meaning_of(evaluation.target):
            remark(line, "dim")
