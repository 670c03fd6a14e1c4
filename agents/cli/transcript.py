"""``kernel-scientist transcript``: read the record of a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .app import LazyCommand, LazyGroup
from .output import echo, echo_all, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .text import columns, duration, interval
from .transcript_filters import filter_options, select_entries

if TYPE_CHECKING:
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.transcript.filters import EventFilter
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.record import Entry, Record

__all__ = ["list_command", "show", "tail", "transcript"]

_POLL_S = 0.3


@click.group(
    cls=LazyGroup,
    lazy={
        "list": LazyCommand("transcript:list_command", "List the runs."),
        "show": LazyCommand("transcript:show", "Show what the agents said, tried and measured."),
        "tail": LazyCommand("transcript:tail", "Follow a run, a line an event."),
        "code": LazyCommand("transcript_code:code", "Print a candidate, or what it changed."),
        "search": LazyCommand("transcript_search:search", "Find words in the records of all runs."),
        "export": LazyCommand("transcript_export:export", "Write a run as HTML, Markdown, JSON or CSV."),
        "schema": LazyCommand("transcript_search:schema", "Print the JSON schema of the events."),
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
@filter_options
@click.option("--no-diff", is_flag=True, help="Leave the candidates' diffs out.")
@runs_dir_option
@json_option
def show(run: str, wanted: EventFilter, no_diff: bool, runs_dir: Path | None, as_json: bool) -> int:
    """Show what the agents of RUN said, cited, tried and measured, in order.

    Every line ends with the event it comes from: [#42] is the line of events.jsonl with seq 42.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.transcript.opened import OpenedRun

    from .closing import run_lines
    from .moved import moved_lines, places_of
    from .story import story_lines

    opened = OpenedRun.of(Run.open(run, runs_dir=resolve_runs_dir(runs_dir)))
    info = opened.info
    events = opened.record.events(select_entries(opened, wanted))
    if as_json:
        told = [one.model_dump(mode="json") for one in events]
        values = None if info is None else info.model_dump(mode="json")
        print_json({"run": values, "events": told, **_learnt(opened, wanted), "faults": _faults(opened)})
        return 0
    for line, style in story_lines(opened.run, events, places_of(opened), diffs=not no_diff):
        echo(line, style)
    if not wanted.is_set and info is not None and info.status != "running":
        echo()
        echo("the outcome", "heading")
        echo_all(run_lines(opened.run))
    passages = _learnt(opened, wanted).get("passages")
    if passages:
        echo()
        echo_all(moved_lines(passages))
    for fault in _faults(opened):
        remark(fault)
    return 0


def _learnt(opened: OpenedRun, wanted: EventFilter) -> dict[str, Any]:
    """What the whole run has learnt; nothing where only some of its events are asked for."""
    from kernel_scientist.agents.transcript.learnt import learnt_values

    return {} if wanted.is_set else learnt_values(opened)


def _faults(opened: OpenedRun) -> list[str]:
    damage = opened.run.damage
    return [*([damage] if damage else []), *opened.record.faults(), *opened.missing_files()]


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@filter_options
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many past events to start with.",
)
@click.option(
    "-f",
    "--follow/--no-follow",
    default=True,
    help="Wait for more events until the run is over, or stop at the last one.  [default: follow]",
)
@runs_dir_option
@json_option
def tail(
    run: str, wanted: EventFilter, lines: int, follow: bool, runs_dir: Path | None, as_json: bool
) -> int:
    """Follow RUN, a line an event, until it has finished; with --json one JSON object a line.

    A line that is cut ends in …; `transcript show` has all of it.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.transcript.opened import OpenedRun

    opened = OpenedRun.of(Run.open(run, runs_dir=resolve_runs_dir(runs_dir)))
    record, verdicts = opened.record, opened.summary.verdicts
    past = wanted.select(record.entries, verdicts)
    _print_events(record, past[max(0, len(past) - lines) :], as_json)
    while follow and not (record.entries and record.entries[-1].kind == "run_finished"):
        # Asked before the look, so that nothing is missed of what was written until then.
        info = opened.info
        read = len(record.entries)
        new = record.refresh()
        _print_events(record, wanted.select(record.entries[read:], opened.summary.verdicts), as_json)
        if info is None:
            remark(opened.run.damage)
            break
        if info.status != "running" and not new:
            remark(f"The run is over ({info.status}): {info.stop_reason}.")
            break
        time.sleep(_POLL_S)
    for fault in record.faults():
        remark(fault)
    return 0


def _print_events(record: Record, entries: list[Entry], as_json: bool) -> None:
    from kernel_scientist.sandbox.printable import escape_hidden

    from .lines import event_line, reference

    if not entries:
        return
    for event in record.events(entries):
        if as_json:
            print(escape_hidden(event.model_dump_json()), flush=True)
            continue
        line = event_line(event)
        if line is not None:
            echo(f"{event.time:%H:%M:%S}  {line} {reference(event)}")
