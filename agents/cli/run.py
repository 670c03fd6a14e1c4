"""``kernel-scientist run``: a session of the agents on a problem."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .chroma import chroma_address, chroma_option
from .output import echo_all, json_option, print_json

if TYPE_CHECKING:
    from kernel_scientist.agents import Event

__all__ = ["run", "seconds"]

_LENGTH = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def seconds(text: str) -> float:
    """The seconds of a length of time such as ``90``, ``90s``, ``30m`` or ``1h30m``."""
    match = _LENGTH.fullmatch(text.strip())
    total = 0.0
    if match is not None:
        for part, unit in zip(match.groups(), (3600, 60, 1), strict=True):
            total += float(part or 0) * unit
    if total <= 0:
        raise click.BadParameter(f"'{text}' is not a length of time; write it like 90s, 30m or 1h30m")
    return total


@click.command()
@click.argument("problem", required=False)
@click.option("--kernel", metavar="FILE", help="Start from this kernel (a file, or a name of the problem's).")
@click.option(
    "--target",
    metavar="NAME",
    help="Where kernels are judged: auto, cpu, ssh://user@host, recorded:FILE.  [default: auto]",
)
@click.option(
    "--model",
    metavar="NAME",
    help="offline, a model of an OpenAI-compatible endpoint, or replay:RUN (a run's folder).  "
    "[default: offline]",
)
@click.option(
    "--policy",
    metavar="NAME",
    help="How Base and Reference are chosen: paper (the model does), greedy, map-elites, islands."
    "  [default: paper]",
)
@chroma_option
@click.option(
    "--prompts",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder of prompt files (selector.md ...) that replace the bundled ones.",
)
@click.option("--generations", type=int, metavar="N", help="How many generations at most.  [default: 4]")
@click.option("--experiments", type=int, metavar="N", help="Experiments in a generation.  [default: 3]")
@click.option("--lanes", type=int, metavar="N", help="Generations that go on side by side.  [default: 1]")
@click.option(
    "--max-time",
    type=seconds,
    metavar="TIME",
    help="Stop after this time, such as 90s, 30m or 1h30m; a bare number is in seconds.",
)
@click.option("--max-evaluations", type=int, metavar="N", help="Stop after so many judged candidates.")
@click.option("--max-tokens", type=int, metavar="N", help="Stop after so many model tokens.")
@click.option("--max-cost", type=float, metavar="USD", help="Stop after so many US dollars.")
@click.option("--no-sandbox", is_flag=True, help="Go on where this machine has no cage for candidates.")
@click.option("--seed", type=int, metavar="N", help="Seed of the judge's draws and of the offline model.")
@click.option(
    "--otel", metavar="URL", help="Send spans to this OTLP collector as the run goes on (extra `otel`)."
)
@click.option("--otel-content", is_flag=True, help="Let the spans hold what was said, asked and answered.")
@click.option(
    "--runs-dir", metavar="DIR", type=click.Path(path_type=Path), help="Where runs are kept.  [default: runs]"
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a configuration key; may be repeated."
)
@click.option("--learn", is_flag=True, help="Keep the findings as experience, as 'knowledge learn' does.")
@json_option
def run(
    problem: str | None,
    kernel: str | None,
    target: str | None,
    model: str | None,
    policy: str | None,
    prompts: Path | None,
    generations: int | None,
    experiments: int | None,
    lanes: int | None,
    max_time: float | None,
    max_evaluations: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    no_sandbox: bool,
    seed: int | None,
    otel: str | None,
    otel_content: bool,
    runs_dir: Path | None,
    sets: tuple[str, ...],
    learn: bool,
    as_json: bool,
) -> int:
    """Let the agents make a kernel of PROBLEM faster.

    PROBLEM is the name of a bundled problem (see `kernel-scientist problem list`) or a folder with a
    problem.toml. It may be left out with --target recorded:FILE, which plays back a recorded search space
    (a Kernel Tuner cache file). Progress goes to stderr, the closing report to stdout.

    Exit code 0: a faster kernel was confirmed. 3: nothing correct beat the starting kernel. 4: stopped by a
    limit. 130: stopped by Ctrl-C, which lets an evaluation end that is on its way; a second Ctrl-C does not.
    2 or 5: the key, the quota or the endpoint gave out, or nothing could begin; what was found is kept.
    A run that was stopped goes on with `kernel-scientist resume`.
    """
    from kernel_scientist.agents import Session, load_config

    from .closing import closing_lines, closing_values
    from .places import naming_the_run
    from .progress import open_display

    config = load_config(
        sets=sets,
        flags={
            "target": target,
            "model": model,
            "policy": policy,
            "prompts": prompts,
            "chroma": chroma_address(),
            "generations": generations,
            "experiments": experiments,
            "lanes": lanes,
            "runs_dir": runs_dir,
            "seed": seed,
            "otel.endpoint": otel,
            "otel.content": otel_content or None,
            "allow_no_sandbox": no_sandbox or None,
            "limits.max_time_s": max_time,
            "limits.max_evaluations": max_evaluations,
            "limits.max_tokens": max_tokens,
            "limits.max_cost_usd": max_cost,
        },
    )
    with (
        naming_the_run(config.runs_dir) as notice,
        open_display(config.limits.max_time_s) as display,
    ):

        def observe(event: Event) -> None:
            notice(event)
            display.show(event)

        result = Session(problem, kernel=kernel, config=config, observer=observe).run()
    if as_json:
        print_json(closing_values(result))
    else:
        echo_all(closing_lines(result))
    if learn:
        from .experience import learn_afterwards

        learn_afterwards(result.run, config.chroma)
    return result.exit_code
