"""``kernel-scientist transcript``: read the record of a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .app import LazyCommand, LazyGroup
from .output import echo, echo_all, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .text import columns, count, duration, interval

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
        "view": LazyCommand("transcript_view:view", "Show a run as a page in the browser."),
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
    damage = [run.damage for run in runs]
    if as_json:
        print_json([_values(run, fault) for run, fault in zip(runs, damage, strict=True)])
        return 0
    if not runs:
        remark(f"No run in {folder} yet; make one with 'kernel-scientist run matmul'.")
        return 0
    rows = [_row(run, fault) for run, fault in zip(runs, damage, strict=True)]
    echo_all(columns(rows, header=("run", "problem", "target", "status", "took", "best")))
    for fault in damage:
        if fault:
            remark(fault)
    where = "" if runs_dir is None else f" --runs-dir {runs_dir}"
    remark(f"Open one as a page: kernel-scientist transcript view {runs[-1].id}{where}")
    return 0


def _values(run: Run, damage: str) -> dict[str, Any]:
    if damage:
        return {"id": run.id, "status": "damaged", "damage": damage}
    return run.info.model_dump(mode="json")


def _row(run: Run, damage: str) -> tuple[str, ...]:
    if damage:
        return (run.id, "-", "-", "damaged", "-", "-")
    from kernel_scientist.agents.run import PROCESS_GONE

    info = run.info
    status = info.status if info.stop_reason != PROCESS_GONE else f"{info.status} ({PROCESS_GONE})"
    best = f"{info.best.candidate_id} {interval(info.best.speedup)}" if info.best else "-"
    return (run.id, info.problem, info.target, status, duration(info.totals.seconds), best)


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--generation", type=click.IntRange(min=0), metavar="N", help="Only this generation.")
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
    info = opened.info
    events = [one for one in opened.events() if generation is None or one.generation == generation]
    if generation is not None and not events:
        raise click.UsageError(_no_generation(opened, generation))
    faults = [*opened.record_faults(), *opened.missing_files()]
    if as_json:
        told = [one.model_dump(mode="json") for one in events]
        print_json({"run": info.model_dump(mode="json"), "events": told, "faults": faults})
        return 0
    for line, style in story_lines(opened, events, diffs=not no_diff):
        echo(line, style)
    if generation is None and info.status != "running":
        echo()
        echo("the outcome", "heading")
        echo_all(run_lines(opened))
    for fault in faults:
        remark(fault)
    return 0


def _no_generation(run: Run, generation: int) -> str:
    last = max((one.generation for one in run.events()), default=0)
    there = f"it has {count(last, 'generation')}" if last else "its record holds none"
    return f"Run {run.id} has no generation {generation}; {there}"


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many past events to start with.",
)
@click.option("--no-follow", is_flag=True, help="Stop at the last event instead of waiting for more.")
@runs_dir_option
@json_option
def tail(run: str, lines: int, no_follow: bool, runs_dir: Path | None, as_json: bool) -> int:
    """Follow RUN, a line an event, until it has finished; with --json one JSON object a line."""
    from kernel_scientist.agents import Run
    from kernel_scientist.agents import events as ev

    opened = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    waiting = list(opened.events())
    seen = 0
    for event in waiting[max(0, len(waiting) - lines) :]:
        _print_event(event, as_json)
    while not no_follow and not any(isinstance(one, ev.RunFinished) for one in waiting):
        # Asked before the last look, so that nothing is missed of what was written until then.
        over = opened.info.status != "running"
        seen = waiting[-1].seq if waiting else seen
        waiting = list(opened.events(start=seen))
        for event in waiting:
            _print_event(event, as_json)
        if over and not waiting:
            remark(f"The run is over ({opened.info.status}): {opened.info.stop_reason}.")
            break
        time.sleep(_POLL_S)
    for fault in opened.record_faults():
        remark(fault)
    return 0


def _print_event(event: Event, as_json: bool) -> None:
    from kernel_scientist.sandbox.printable import escape_hidden

    from .lines import event_line, reference

    if as_json:
        print(escape_hidden(event.model_dump_json()), flush=True)
        return
    line = event_line(event)
    if line is not None:
        echo(f"{event.time:%H:%M:%S}  {line} {reference(event)}")
