"""A run in forms for other programs and for other people: JSON, CSV of candidates, Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from kernel_scientist.sandbox.printable import escape_hidden, printable, without_escapes
from kernel_scientist.tools.evaluation import Interval

from .learnt import learnt_values, passage_place
from .markdown import learnt_markdown, markdown_links, markdown_text
from .opened import OpenedRun
from .redaction import LEFT_OUT, Redaction
from .runs import candidate_values, overview_values
from .sources import source_text
from .story import row_values
from .values import Json

__all__ = ["candidates_csv", "run_json", "run_markdown"]

_COLUMNS = (
    "id", "parent_id", "reference_id", "lane", "generation", "slot", "attempt", "verdict", "tier", "speedup",
    "speedup_low", "speedup_high", "level", "time_us", "checks_passed", "checks", "strategy", "predicted_min",
    "predicted_max", "measured_uplift", "calibration", "innovation", "criterion", "citations", "idea",
)  # fmt: skip


def run_json(opened: OpenedRun, redaction: Redaction) -> str:
    """The run, its candidates and every event as one JSON document."""
    record = opened.record
    info = opened.info
    values = {
        "run": None if info is None else info.model_dump(mode="json"),
        "candidates": [
            row_values(row) | {"source": source_text(opened.run, row.path).text}
            for row in opened.summary.candidates.values()
        ],
        "learnt": learnt_values(opened),
        "events": [event.model_dump(mode="json") for event in record.events(record.entries)],
        "faults": opened.faults(),
        "left_out": sorted(redaction.parts),
    }
    return escape_hidden(json.dumps(redaction.apply(values), ensure_ascii=False, indent=1)) + "\n"


def candidates_csv(opened: OpenedRun, redaction: Redaction) -> str:
    """The candidates, a row each, as RFC 4180 has it; no cell begins like a formula of a spreadsheet."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for row in opened.summary.candidates.values():
        values: Json = redaction.apply(row_values(row))
        speedup: Json = values["speedup"] or {}
        values |= {
            "speedup": speedup.get("value"), "speedup_low": speedup.get("low"),
            "speedup_high": speedup.get("high"), "level": speedup.get("level"),
            "citations": " ".join(values["citations"]),
        }  # fmt: skip
        writer.writerow([_cell(values[name]) for name in _COLUMNS])
    return table.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(without_escapes(value))
    # Spreadsheets run what begins like a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


def run_markdown(opened: OpenedRun, redaction: Redaction) -> str:
    """The result, the idea, its source and the evidence, as a pull request would have them."""
    about: Json = redaction.apply(overview_values(opened))
    info: Json = about["told"]
    best: Json | None = about["best"]
    lines = [f"## {markdown_text(info['problem'] or about['id'])}: {_result(about)}", ""]
    if best is not None and best["speedup"] is not None:
        lines += [_claim(about, info), ""]
    lines += _story(about) + _evidence(about) + _times(about)
    lines += learnt_markdown(redaction.apply(learnt_values(opened))) + _facts(about, info)
    if best is not None:
        lines += _change(opened, redaction, best["candidate_id"])
    for fault in about["faults"]:
        lines += ["", f"> {markdown_text(fault)}"]
    return "\n".join(lines).rstrip() + "\n"


def _result(about: Json) -> str:
    best = about["best"]
    if best is None or best["speedup"] is None:
        return "no faster kernel yet" if about["live"] else "no faster kernel was found"
    figure = f"{best['speedup']['value']:.2f}x faster"
    if about["live"]:
        return f"so far {figure}"
    return figure if best["tier"] == "confirm" else f"{figure}, not confirmed"


def _claim(about: Json, info: Json) -> str:
    best, confirmed = about["best"], about["evidence"]["confirmed"]
    how = f"measured at tier '{best['tier']}', not confirmed"
    if confirmed is not None:
        pairs = confirmed["pairs"]
        how = f"confirmed in {pairs[0]} to {pairs[1]} fresh pairs a shape" if pairs else "confirmed"
    device = f", on {markdown_text(info['device'])}" if info["device"] else ""
    figure = f"**{_interval(best['speedup'])}** over the starting kernel"
    return f"Candidate {best['candidate_id']}: {figure}, {how}{device}."


def _story(about: Json) -> list[str]:
    story = about["story"]
    if story is None:
        return []
    step = story["steps"][story["decisive"]]
    gain = f" ({step['gain']:.2f}x in this step)" if step["gain"] else ""
    idea = markdown_text(step["idea"] or "not recorded")
    lines = ["### The idea", "", f"{idea} Candidate {step['id']}{gain}.", ""]
    lines += [f"- {markdown_text(item)}" for item in story["rubric"]]
    if story["report"] and story["report"] != LEFT_OUT:
        lines += ["", f"The Coder's report: {markdown_text(story['report'])}", ""]
    for one in story["points"]:
        why = f" ({markdown_text(one['why'])})" if one["why"] else ""
        lines.append(f"- {markdown_text(one['status'])}: {markdown_text(one['item'])}{why}")
    lines += ["", "### Where it came from", ""]
    for name in step["citations"]:
        passage = story["passages"].get(name)
        if passage is None:
            lines.append(f"- {markdown_text(name)}")
            continue
        place = markdown_text(passage_place(passage))
        lines.append(f"- {place} ({markdown_text(name)}): {markdown_links(passage['source'])}")
        if passage["text"] and passage["text"] != LEFT_OUT:
            lines += [f"  > {markdown_text(line)}" for line in passage["text"].splitlines() if line.strip()]
    return [
        *(lines if step["citations"] else [*lines, "It cites no passage: the idea is the model's own."]),
        "",
    ]


def _evidence(about: Json) -> list[str]:
    evidence = about["evidence"]
    shown = evidence["confirmed"] or evidence["judged"]
    if shown is None:
        return []
    checks = shown["checks"]
    passed = sum(check["passed"] for check in checks)
    held_out = sum(check["passed"] and check["name"].startswith("held-out") for check in checks)
    lines = [
        "### Why the figure can be believed",
        "",
        f"- {passed} of {len(checks)} checks passed, {held_out} on held-out shapes",
    ]
    if shown["method"]:
        lines.append(f"- {markdown_text(shown['method'])}")
    judged = evidence["judged"]
    if judged is not None:
        lines.append(f"- sandbox: {markdown_text(judged['sandbox'])}")
    return [*lines, ""]


def _times(about: Json) -> list[str]:
    timings = about["evidence"]["timings"]
    if not timings:
        return []
    lines = ["| shape | start | best | speed-up | of the speed of light |", "|---|---|---|---|---|"]
    for one in timings:
        shape = " ".join(f"{name}={size}" for name, size in one["shape"].items())
        start = "" if one["baseline_us"] is None else f"{one['baseline_us']:.4g} µs"
        speedup = "" if one["speedup"] is None else _interval(one["speedup"])
        share = "not known" if one["light_share"] is None else f"{one['light_share'] * 100:.1f} %"
        lines.append(f"| {markdown_text(shape)} | {start} | {one['time_us']:.4g} µs | {speedup} | {share} |")
    return [*lines, ""]


def _facts(about: Json, info: Json) -> list[str]:
    counts = about["counts"]
    cost = "unknown" if counts["cost_usd"] is None else f"${counts['cost_usd']:.2f}"
    tokens = counts["prompt_tokens"] + counts["completion_tokens"]
    models = markdown_text(", ".join(info["models"]))
    why = "still running" if about["live"] else info["stop_reason"] or "not recorded"
    return [
        f"{counts['candidates']} candidates, {counts['verdicts'].get('accepted', 0)} accepted; "
        f"{'about ' if counts['estimated'] else ''}{tokens} tokens, cost {cost}; models: {models}. "
        f"Why it stopped: {markdown_text(why)}. Run {markdown_text(about['id'])}.",
        "",
    ]


def _change(opened: OpenedRun, redaction: Redaction, best_id: str) -> list[str]:
    if "code" in redaction.parts:
        return []
    from ..recorder import unified_diff

    rows = opened.summary.candidates
    chain = opened.summary.ancestry(best_id)
    start, best = (candidate_values(opened, rows[row.id]) for row in (chain[0], chain[-1]))
    diff = printable(without_escapes(unified_diff(start["source"], best["source"], start["id"], best["id"])))
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", diff)), default=0))
    return [
        "<details><summary>What changed</summary>",
        "",
        f"{fence}diff",
        diff.rstrip("\n"),
        fence,
        "",
        "</details>",
    ]


def _interval(values: Json) -> str:
    speedup = Interval.from_dict(values)
    return f"{speedup.value:.2f}x ({speedup.low:.2f}x to {speedup.high:.2f}x at {speedup.level * 100:.3g} %)"
