"""``kernel-scientist transcript``: read the record of a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .app import LazyCommand, LazyGroup
from .output import echo, echo_all, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .text import columns, duration, interval

if TYPE_CHECKING:
    from kernel_scientist.agents import Event, Run

__all__ = ["list_command", "show", "tail", "transcript"]

_POLL_S = 0.3


@click.group(
    cls=LazyGroup,
    lazy={
        "list": LazyCommand("transcript:list_command", "List the runs."),
        "show": LazyCommand("transcript:show", "Show what the agents said, tried and measured."),
        "tail": LazyCommand("transcript:tail", "Follow a run, a line an event."),
    },
)
def transcript() -> None:
    """Read the record of a run.

    RUN is `last`, an id, the beginning of one, or the path of a run's folder.
    """


@click.command("list")
@runs_dir_option
@json_option
def list_command(runs_dir: Path | None, as_json: bool) -> int:
    """List the runs, oldest first."""
    from kernel_scientist.agents import list_runs

    folder = resolve_runs_dir(runs_dir)
    runs = list_runs(folder)
    if as_json:
        print_json([run.info.model_dump(mode="json") for run in runs])
        return 0
    if not runs:
        remark(f"No run in {folder} yet; make one with 'kernel-scientist run matmul'.")
        return 0
    echo_all(
        columns([_row(run) for run in runs], header=("run", "problem", "target", "status", "took", "best"))
    )
    return 0


def _row(run: Run) -> tuple[str, ...]:
    info = run.info
    best = f"{info.best.candidate_id} {interval(info.best.speedup)}" if info.best else "-"
    return (run.id, info.problem, info.target, info.status, duration(info.totals.seconds), best)


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--generation", type=int, metavar="N", help="Only this generation.")
@click.option("--no-diff", is_flag=True, help="Leave the candidates' diffs out.")
@runs_dir_option
@json_option
def show(run: str, generation: int | None, no_diff: bool, runs_dir: Path | None, as_json: bool) -> int:
    """Show what the agents of RUN said, cited, tried and measured, in order.

    Every line ends with the event it comes from: [#42] is the line of events.jsonl with seq 42.
    """
    from kernel_scientist.agents import Run

    from .closing import run_lines
    from .story import story_lines

    opened = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    events = [one for one in opened.events() if generation is None or one.generation == generation]
    if as_json:
        info = opened.info.model_dump(mode="json")
        print_json({"run": info, "events": [one.model_dump(mode="json") for one in events]})
        return 0
    for line, style in story_lines(opened, events, diffs=not no_diff):
        echo(line, style)
    if generation is None and opened.info.status != "running":
        echo()
        echo("the outcome", "heading")
        echo_all(run_lines(opened))
    if opened.damaged_lines:
        remark(f"{opened.damaged_lines} damaged line(s) of events.jsonl were passed over.")
    return 0


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option(
    "--lines", "-n", type=int, default=20, show_default=True, help="How many past events to start with."
)
@click.option("--no-follow", is_flag=True, help="Stop at the last event instead of waiting for more.")
@runs_dir_option
@json_option
def tail(run: str, lines: int, no_follow: bool, runs_dir: Path | None, as_json: bool) -> int:
    """Follow RUN, a line an event, until it has finished; with --json one JSON object a line."""
    from kernel_scientist.agents import Run
    from kernel_scientist.agents import events as ev

    opened = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    seen = 0
    waiting = list(opened.events())
    first = max(0, len(waiting) - lines) if lines >= 0 else 0
    for event in waiting[first:]:
        _print_event(event, as_json)
    while True:
        finished = any(isinstance(one, ev.RunFinished) for one in waiting)
        seen = waiting[-1].seq if waiting else seen
        if finished or no_follow:
            return 0
        time.sleep(_POLL_S)
        waiting = list(opened.events(start=seen))
        for event in waiting:
            _print_event(event, as_json)


def _print_event(event: Event, as_json: bool) -> None:
    from .lines import event_line, reference

    if as_json:
        print(event.model_dump_json(), flush=True)
        return
    line = event_line(event)
    if line is not None:
        echo(f"{event.time:%H:%M:%S}  {line} {reference(event)}")
