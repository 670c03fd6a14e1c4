"""Which passage of literature moved which experiment, as lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .text import one_line

if TYPE_CHECKING:
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.values import Json

__all__ = ["moved_lines", "places_of"]


def moved_lines(passages: list[Json]) -> list[str]:
    """A passage with its document, section and page; beneath it the experiments that cite it."""
    from kernel_scientist.agents.transcript.learnt import passage_place

    if not passages:
        return []
    lines = ["which passage moved which experiment (uplift over the Base it was tried on)"]
    for one in passages:
        lines.append(f"  {one_line(one['id'])}: {one_line(passage_place(one)) or 'never shown to an agent'}")
        lines.append(f"    {', '.join(_moved(experiment) for experiment in one['experiments'])}")
    return lines


def _moved(one: Json) -> str:
    uplift = one["measured_uplift"]
    came = str(one["verdict"]).replace("_", " ") if uplift is None else f"{uplift:+.1f} %"
    return f"{one['candidate_id']} {one_line(came)} [#{one['finding_seq'] or one['plan_seq']}]"


def places_of(opened: OpenedRun) -> Callable[[str], str]:
    """Of a passage's id the document, section and page; empty for one that no agent was shown."""
    from kernel_scientist.agents.transcript.learnt import passage_place
    from kernel_scientist.agents.transcript.story import passage_values

    known: dict[str, str] = {}

    def place_of(name: str) -> str:
        if name not in known:
            found = passage_values(opened.record, opened.summary, [name]).get(name)
            known[name] = "" if found is None else passage_place(found)
        return known[name]

    return place_of
