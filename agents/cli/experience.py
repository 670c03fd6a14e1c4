"""``kernel-scientist knowledge learn``: keep what a run found out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .adding import SOME_FAILED
from .knowledge_options import chroma_option, embedder_option, open_knowledge
from .output import echo, json_option, print_json
from .places import resolve_runs_dir, runs_dir_option
from .text import count, one_line

if TYPE_CHECKING:
    from kernel_scientist.knowledge import AddItem

__all__ = ["learn"]


@click.command()
@click.argument("run", default="last")
@runs_dir_option
@chroma_option
@embedder_option
@json_option
def learn(run: str, runs_dir: Path | None, as_json: bool) -> int:
    """Store the findings of RUN (an id, the beginning of one, a folder, or `last`) as experience.

    Later sessions find them beside the literature and see which is which. Learning a run again replaces what
    was learnt of it before; 'knowledge remove' forgets it.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.experience import learn as store

    found = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    with open_knowledge() as base:
        item = store(found, base)
    if as_json:
        print_json(asdict(item))
    else:
        echo(_told(item))
    return SOME_FAILED if item.status == "failed" else 0


def _told(item: AddItem) -> str:
    if item.status == "failed":
        return f"failed: {one_line(item.reason)}"
    return f"{item.status}: {count(item.chunks, 'passage')} of experience, as {item.document_id}"
