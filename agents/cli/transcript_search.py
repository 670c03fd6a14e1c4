"""``kernel-scientist transcript search`` and ``schema``."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import echo, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .text import one_line
from .transcript_filters import filter_options

if TYPE_CHECKING:
    from kernel_scientist.agents.transcript.filters import EventFilter

__all__ = ["schema", "search"]


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--run", metavar="RUN", help="Only in this run: `last`, an id, the beginning of one, or a folder."
)
@filter_options
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N",
    help="Stop after so many places; that there are more is said.",
)  # fmt: skip
@runs_dir_option
@json_option
def search(
    words: tuple[str, ...],
    run: str | None,
    wanted: EventFilter,
    limit: int,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Find the events, and the candidates' sources, that hold all WORDS, newest run first.

    Case does not matter; several words as one argument ("bank conflicts") are looked for as a phrase.
    """
    from kernel_scientist.agents import Run, list_runs
    from kernel_scientist.agents.transcript.search import split_words

    folder = resolve_runs_dir(runs_dir)
    # Each argument is a phrase of its own: the shell has taken the quotes away.
    parts = split_words(" ".join(f'"{word}"' if " " in word else word for word in words))
    runs = [Run.open(run, runs_dir=folder)] if run is not None else list_runs(folder)[::-1]
    hits, more, faults = _find(runs, parts, wanted, limit)
    if as_json:
        print_json({"hits": hits, "more": more, "faults": faults})
        return 0
    for hit in hits:
        about = f" {' '.join(hit['candidates'])}" if hit["candidates"] else ""
        who = f"{hit['agent']} " if hit["agent"] else ""
        echo(f"{hit['run']} [#{hit['seq']}] {who}{hit['kind']}{about}", "heading")
        echo(f"    {hit['field'] or 'text'}: {one_line(hit['excerpt'])}")
    for fault in faults:
        remark(fault)
    if more:
        remark(f"There are more than {limit} places; --limit shows more of them.")
    elif not hits:
        remark(f"Nothing found in {len(runs)} runs of {folder}." if run is None else "Nothing found.")
    return 0


def _find(
    runs: list[Any], parts: tuple[str, ...], wanted: EventFilter, limit: int
) -> tuple[list[dict[str, Any]], bool, list[str]]:
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.search import search_record

    hits: list[dict[str, Any]] = []
    faults: list[str] = []
    for run in runs:
        opened = OpenedRun.of(run)
        faults += opened.faults()
        found = islice(search_record(opened.record, opened.summary, parts, wanted), limit + 1 - len(hits))
        hits += [{"run": run.id, **asdict(hit)} for hit in found]
        if len(hits) > limit:
            break
    return hits[:limit], len(hits) > limit, faults


@click.command()
@json_option
def schema(as_json: bool) -> int:
    """Print the JSON schema of one event: a line of events.jsonl. It is JSON with and without --json."""
    del as_json
    from pydantic import TypeAdapter

    from kernel_scientist.agents.events import Event

    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    print_json(adapter.json_schema())
    return 0
