"""``kernel-scientist transcript code``: a candidate's source, or its difference from another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import echo, json_option, print_json
from .places import resolve_runs_dir, runs_dir_option
from .text import clean

if TYPE_CHECKING:
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.summary import CandidateRow

__all__ = ["code"]


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.argument("candidate", metavar="[CANDIDATE]", default="best")
@click.option("--diff", is_flag=True, help="Print what it changed in its parent.")
@click.option("--against", metavar="CANDIDATE", help="Print what differs from this candidate instead.")
@runs_dir_option
@json_option
def code(
    run: str, candidate: str, diff: bool, against: str | None, runs_dir: Path | None, as_json: bool
) -> int:
    """Print the source of CANDIDATE of RUN, whole; or with --diff or --against a unified diff.

    CANDIDATE is `best` or an id such as 0007 (7 will do); 0000 is the starting kernel.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.recorder import unified_diff
    from kernel_scientist.agents.transcript.opened import OpenedRun

    opened = OpenedRun.of(Run.open(run, runs_dir=resolve_runs_dir(runs_dir)))
    row = _row(opened, candidate)
    source = _source(opened, row)
    other = _row(opened, against) if against is not None else _parent(opened, row) if diff else None
    change = None if other is None else unified_diff(_source(opened, other), source, other.id, row.id)
    if as_json:
        values = {"run": opened.run.id, "candidate": row.id, "verdict": row.verdict, "source": source}
        print_json(values | {"against": None if other is None else other.id, "diff": change})
    elif change is None:
        echo(source.removesuffix("\n"))
    else:
        for line in clean(change).splitlines():
            echo(line, {"+": "good", "-": "bad"}.get(line[:1], ""))
    return 0


def _row(opened: OpenedRun, name: str) -> CandidateRow:
    rows = opened.summary.candidates
    if name == "best":
        best = opened.best_id
        if best is None:
            raise click.UsageError(f"Run {opened.run.id} has no best candidate; name one, such as 0000")
        name = best
    row = rows.get(name) or rows.get(name.zfill(4))
    if row is None:
        known = f"0000 to {max(rows)}" if rows else "none"
        raise click.UsageError(f"Run {opened.run.id} has no candidate {name}; it has {known}")
    return row


def _parent(opened: OpenedRun, row: CandidateRow) -> CandidateRow:
    if row.parent_id is None:
        raise click.UsageError(f"Candidate {row.id} is the starting kernel and has no parent; use --against")
    return _row(opened, row.parent_id)


def _source(opened: OpenedRun, row: CandidateRow) -> str:
    from kernel_scientist.agents.transcript.sources import source_text
    from kernel_scientist.sandbox.errors import UsageError

    found = source_text(opened.run, row.path)
    if found.fault:
        raise UsageError(f"{opened.run.path}: {found.fault}")
    return found.text
