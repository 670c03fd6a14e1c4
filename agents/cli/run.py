"""``kernel-scientist run``: a session of the agents on a problem."""

from __future__ import annotations

from pathlib import Path

import click

from .knowledge_options import chroma_option, embedder_option
from .knowledge_options import flags as knowledge_flags
from .output import json_option
from .session_options import configuration_keys, hold_session, report, session_options

__all__ = ["run"]


@click.command()
@click.argument("problem", required=False)
@click.option("--kernel", metavar="FILE", help="Start from this kernel (a file, or a name of the problem's).")
@click.option(
    "--target",
    metavar="NAME",
    help="Where kernels are judged: auto, mi300, mi300-warm, cpu, ssh://user@host, recorded:FILE.  "
    "[default: auto]",
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
@embedder_option
@click.option("--generations", type=int, metavar="N", help="How many generations at most.  [default: 4]")
@click.option("--experiments", type=int, metavar="N", help="Experiments in a generation.  [default: 3]")
@click.option("--lanes", type=int, metavar="N", help="Generations that go on side by side.  [default: 1]")
@session_options()
@click.option("--no-sandbox", is_flag=True, help="Go on where this machine has no cage for candidates.")
@click.option("--seed", type=int, metavar="N", help="Seed of the judge's draws and of the offline model.")
@click.option(
    "--runs-dir", metavar="DIR", type=click.Path(path_type=Path), help="Where runs are kept.  [default: runs]"
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a configuration key; may be repeated."
)
@json_option
def run(
    problem: str | None, kernel: str | None, sets: tuple[str, ...], as_json: bool, **given: object
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

    config = load_config(sets=sets, flags=configuration_keys({**given, **knowledge_flags()}))
    result, _ = hold_session(
        lambda observe: Session(problem, kernel=kernel, config=config, observer=observe),
        config.runs_dir,
        config.limits.max_time_s,
    )
    return report(result, as_json=as_json)
