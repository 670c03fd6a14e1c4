"""The filters that ``transcript show``, ``tail`` and ``search`` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kernel_scientist.agents.transcript.filters import EventFilter
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.record import Entry

__all__ = ["filter_options", "select_entries"]

_NAMES = ("agent", "kind", "generation", "lane", "candidate", "verdict")


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each field of `EventFilter`; the command gets one as its argument `wanted`."""

    @wraps(command)
    def filtered(**arguments: Any) -> Any:
        from kernel_scientist.agents.transcript.filters import EventFilter

        values = {name: arguments.pop(name) for name in _NAMES}
        return command(wanted=EventFilter(**values), **arguments)

    option = click.option
    added: Callable[..., Any] = filtered
    for name, metavar, text in (
        ("verdict", "WORD", "Only about candidates of this verdict, such as accepted or wrong_result."),
        ("candidate", "ID", "Only about this candidate, such as 0007."),
        ("kind", "KIND", "Only events of this kind, such as message or tool_call."),
        ("agent", "NAME", "Only what this agent said and did: selector, researcher, coder, benchmarker."),
    ):
        added = option(f"--{name}", metavar=metavar, help=text)(added)
    number = click.IntRange(min=0)
    lane = option("--lane", type=number, metavar="N", help="Only this lane of a run with several.")(added)
    return option("--generation", type=number, metavar="N", help="Only this generation.")(lane)


def select_entries(opened: OpenedRun, wanted: EventFilter) -> list[Entry]:
    """The events that `wanted` asks for. Raises `click.UsageError` where a filter names what is not there."""
    record, summary = opened.record, opened.summary
    chosen = wanted.select(record.entries, summary.verdicts)
    if chosen or not wanted.is_set:
        return chosen
    entries = record.entries
    known: dict[str, Sequence[object]] = {
        "agent": sorted({entry.agent for entry in entries if entry.agent}),
        "kind": sorted({entry.kind for entry in entries}),
        "generation": sorted({entry.generation for entry in entries}),
        "lane": sorted({entry.lane for entry in entries}),
        "candidate": list(summary.candidates),
        "verdict": sorted(set(summary.verdicts.values())),
    }
    for name, values in known.items():
        given = getattr(wanted, name)
        if given is not None and given not in values:
            there = ", ".join(str(value) for value in values[:40]) or "none"
            raise click.UsageError(f"Run {opened.run.id} has no {name} {given}; it has {there}")
    raise click.UsageError(f"No event of run {opened.run.id} meets all of these filters")
