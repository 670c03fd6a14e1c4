"""Markdown for a pull request: anybody's text on one line, and what a run has learnt as tables."""

from __future__ import annotations

import re

from kernel_scientist.sandbox.printable import printable, without_escapes

from .learnt import passage_place
from .values import Json

__all__ = ["learnt_markdown", "markdown_links", "markdown_text"]


def learnt_markdown(learnt: Json) -> list[str]:
    """The strategies, and the passages with the experiments that cite them."""
    return [*_strategies(learnt), *_passages(learnt["passages"])]


def _strategies(learnt: Json) -> list[str]:
    if not learnt["strategies"]:
        return []
    lines = [
        "### What came of each strategy",
        "",
        "| strategy | tried | accepted | median uplift | best uplift |",
        "|---|---|---|---|---|",
    ]
    for one in learnt["strategies"]:
        best = "" if one["best_id"] is None else f" ({markdown_text(one['best_id'])})"
        lines.append(
            f"| {markdown_text(one['strategy'])} | {one['tried']} | {one['accepted']} "
            f"| {_percent(one['median_uplift'])} | {_percent(one['best_uplift'])}{best} |"
        )
    said = learnt["calibration_text"]
    return [*lines, "", *([f"{markdown_text(said)}.", ""] if said else [])]


def _passages(passages: list[Json]) -> list[str]:
    if not passages:
        return []
    lines = ["### Which passage moved which experiment", "", "| passage | experiments |", "|---|---|"]
    for one in passages:
        place = markdown_text(passage_place(one)) or "never shown to an agent"
        moved = ", ".join(_moved(experiment) for experiment in one["experiments"])
        lines.append(f"| {place} ({markdown_text(one['id'])}) | {moved} |")
    return [*lines, ""]


def _moved(one: Json) -> str:
    uplift = one["measured_uplift"]
    came = markdown_text(str(one["verdict"]).replace("_", " ")) if uplift is None else _percent(uplift)
    return f"{markdown_text(one['candidate_id'])} {came}"


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{value:+.1f} %"


def markdown_text(text: object) -> str:
    """A text of anybody's on one line of Markdown: no markup, links, images, tables or mentions."""
    line = " ".join(printable(without_escapes(str(text))).split())
    escaped = re.sub(r"([\\`*_\[\]|~#])", r"\\\1", line)
    escaped = re.sub(r"^([>+=-]|\d+(?=[.)]))", r"\\\1", escaped)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;")


def markdown_links(sources: str) -> str:
    """Addresses as links, and whatever is none as text."""
    plain = re.compile(r"https?://[\w./%~?=&+:#-]+")
    return " ".join(f"<{one}>" if plain.fullmatch(one) else markdown_text(one) for one in sources.split())
