"""The closing report of a run: what was won, on what evidence, and what it does not mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kernel_scientist.agents import Run, SessionResult
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.problem_name import problem_name
from kernel_scientist.agents.run import BASELINE_ID, RunInfo
from kernel_scientist.tools.evaluation import Comparison, Evaluation, ShapeTiming
from kernel_scientist.tools.problem import RECORDED

from .judged import how_compared, light_share, resource_lines, timing_lines
from .learnt import learnt_lines, learnt_values
from .lines import reference
from .places import resume_command
from .text import count, duration, indent, interval, one_line, percent

__all__ = ["closing_lines", "closing_values", "meaning_of", "resources_title", "run_lines", "times_title"]

_CPU_MEANING = (
    "What the figures mean: HIP source ran on one core of this CPU, its outputs were checked against the",
    "NumPy reference, and the times are of those runs. What they do not mean: they predict nothing for an",
    "MI300, whose memory, LDS and matrix units this CPU does not have. The gfx942 report is the GPU",
    "compiler's; nothing was run on a GPU.",
)
_RECORDED_MEANING = (
    "What the figures mean: the times are those that the recording holds of the device it names, looked up.",
    "What they do not mean: nothing was compiled, checked or timed here, and no result was seen.",
)


def meaning_of(target: str) -> Sequence[str]:
    """What the figures of a target do and do not mean, as lines of text."""
    if target.startswith(RECORDED):
        return _RECORDED_MEANING
    return _CPU_MEANING if target == "cpu" else ()


def times_title(target: str) -> str:
    """What stands above a table of times."""
    if target.startswith(RECORDED):
        return "times from the recording, not measured here"
    return "times on this device"


_RESUMABLE = ("limit", "interrupted", "failed")


def resources_title(target: str) -> str:
    """What stands above the table of resources."""
    how = "gfx942" if target.startswith("mi300") else "gfx942, compiled and not run"
    return f"what the MI300 compiler makes of it ({how})"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the report is made of, with the events it comes from."""

    candidates: int
    accepted: int
    baseline: ev.EvaluationFinished | None
    best: ev.EvaluationFinished | None
    confirmed: ev.ComparisonFinished | None
    finished: ev.RunFinished | None
    estimated: bool


def closing_lines(result: SessionResult) -> list[str]:
    """The report of a session that has just ended."""
    return run_lines(result.run)


def run_lines(run: Run) -> list[str]:
    """The report of a recorded run, from its files alone."""
    info = run.info
    facts = _facts(run)
    ended = f" {reference(facts.finished)}" if facts.finished else ""
    why = one_line(info.stop_reason).rstrip(".")
    lines = [_headline(run, facts), f"{_effort(info.totals, facts)}. Why it stopped: {why}{ended}."]
    if info.best is not None:
        path = _shown(run.path / info.best.path)
        lines += ["", f"best kernel   {path}   (candidate {info.best.candidate_id})"]
    lines += _timing_part(facts, info.target) + _resource_part(facts, info.target)
    lines += learnt_lines(run.candidates())
    meaning = meaning_of(info.target)
    lines += ["", *meaning] if meaning else []
    return [*lines, "", *_next_lines(run)]


def _effort(totals: ev.Totals, facts: _Facts) -> str:
    about = "about " if facts.estimated else ""
    tokens = totals.prompt_tokens + totals.completion_tokens
    return (
        f"{count(facts.candidates, 'candidate')} tried, {facts.accepted} accepted; "
        f"{about}{tokens} tokens, {_cost(totals.cost_usd)}; {duration(totals.seconds)}"
    )


def _headline(run: Run, facts: _Facts) -> str:
    info = run.info
    if info.best is None:
        return f"{info.problem}: no correct kernel beat the starting one."
    how = f"confirmed {how_compared(info.target)}"
    if info.best.tier != "confirm":
        how = f"measured at tier '{info.best.tier}', not confirmed"
    proof = f" {reference(facts.confirmed)}" if facts.confirmed else ""
    return f"{info.problem}: {interval(info.best.speedup)} over the starting kernel, {how}{proof}."


def _timing_part(facts: _Facts, target: str) -> list[str]:
    timings, source = _best_timings(facts)
    if not timings or source is None:
        return []
    lines = [
        "",
        f"{times_title(target)} {reference(source)}",
        *(indent(line) for line in timing_lines(timings)),
    ]
    share = _overall_share(timings)
    if share is not None:
        whose = "this CPU's speed of light on one core" if target == "cpu" else "this device's speed of light"
        lines.append(f"  overall: {percent(share)} of {whose} (geometric mean)")
    return lines


def _resource_part(facts: _Facts, target: str) -> list[str]:
    events = {"start": facts.baseline, "best": facts.best}
    named = [(name, one.evaluation) for name, one in events.items() if one]
    if not named:
        return []
    refs = " ".join(reference(one) for one in events.values() if one)
    title = f"{resources_title(target)} {refs}"
    return ["", title, *(indent(line) for line in resource_lines(named))]


def _next_lines(run: Run) -> list[str]:
    where = "" if run.path.parent == Path("runs") else f" --runs-dir {run.path.parent}"
    problem = problem_name(run.info)
    run_again = f"kernel-scientist run {problem}"
    bench_again = f"--problem {problem}"
    if run.info.target.startswith(RECORDED):
        run_again = f"kernel-scientist run --target {run.info.target}"
        bench_again = f"--target {run.info.target}"
    lines = [
        f"transcript    {_shown(run.path / 'events.jsonl')}   ([#n] is the line with seq n)",
        f"read it       kernel-scientist transcript show {run.id}{where}",
        f"open it       kernel-scientist transcript view {run.id}{where}",
    ]
    if run.info.status in _RESUMABLE:
        lines.append(f"go on         {resume_command(run.path)}{_raising(run.info)}")
    if run.info.best is not None:
        kernel = _shown(run.path / run.info.best.path)
        return [*lines, f"try next      kernel-scientist bench {kernel} {bench_again}"]
    if run.info.status in _RESUMABLE:
        return lines
    return [*lines, f"try next      {run_again} --generations {2 * max(1, run.info.generations)}"]


def _raising(info: RunInfo) -> str:
    """What else a run needs that a limit stopped."""
    return "   (with a higher limit: --max-time, --max-cost ...)" if info.status == "limit" else ""


def closing_values(result: SessionResult) -> dict[str, Any]:
    """The same report as JSON values."""
    run = result.run
    info = run.info
    facts = _facts(run)
    timings, _ = _best_timings(facts)
    return {
        "run": run.id,
        "path": str(run.path),
        "transcript": str(run.path / "events.jsonl"),
        "status": result.status,
        "stop_reason": result.stop_reason,
        "exit_code": result.exit_code,
        "problem": info.problem,
        "target": info.target,
        "device": info.device,
        "sandbox": info.sandbox,
        "candidates": facts.candidates,
        "accepted": facts.accepted,
        "totals": info.totals.model_dump(mode="json"),
        "best": _best_values(run),
        "learnt": result.learnt or None,
        "resume": resume_command(run.path) if info.status in _RESUMABLE else None,
        **learnt_values(run.candidates()),
        "timings": TypeAdapter(tuple[ShapeTiming, ...]).dump_python(tuple(timings), mode="json"),
        "speed_of_light_share": _overall_share(timings),
        "gfx942": {
            name: _resources(event) for name, event in (("start", facts.baseline), ("best", facts.best))
        },
    }


def _best_values(run: Run) -> dict[str, Any] | None:
    best = run.info.best
    if best is None:
        return None
    return best.model_dump(mode="json") | {"path": str(run.path / best.path)}


def _resources(event: ev.EvaluationFinished | None) -> list[Any] | None:
    if event is None:
        return None
    values = TypeAdapter(Evaluation).dump_python(event.evaluation, mode="json")
    return list(values["resources"])


def _facts(run: Run) -> _Facts:
    best_id = run.info.best.candidate_id if run.info.best else None
    judged: dict[str, ev.EvaluationFinished] = {}
    confirmed = None
    finished = None
    made = 0
    estimated = False
    for event in run.events():
        match event:
            case ev.CandidateCreated():
                made += event.parent_id is not None
            case ev.EvaluationFinished():
                judged[event.candidate_id] = event
            case ev.ComparisonFinished() if (event.a_id, event.b_id) == (BASELINE_ID, best_id):
                confirmed = event
            case ev.RunFinished():
                finished = event
            case ev.ModelCall():
                estimated |= event.usage.estimated
            case _:
                pass
    accepted = sum(one.evaluation.accepted for name, one in judged.items() if name != BASELINE_ID)
    best = judged.get(best_id) if best_id else None
    return _Facts(made, accepted, judged.get(BASELINE_ID), best, confirmed, finished, estimated)


def _best_timings(facts: _Facts) -> tuple[Sequence[ShapeTiming], ev.Event | None]:
    """Timings of the best kernel, from the confirming comparison where there was one."""
    if facts.confirmed is not None:
        comparison: Comparison = facts.confirmed.comparison
        return comparison.timings or comparison.b.timings, facts.confirmed
    shown = facts.best or facts.baseline
    return (shown.evaluation.timings, shown) if shown else ((), None)


def _overall_share(timings: Sequence[ShapeTiming]) -> float | None:
    shares = [light_share(timing) for timing in timings]
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return None
    product = 1.0
    for share in known:
        product *= share ** (1.0 / len(known))
    return product


def _cost(cost_usd: float | None) -> str:
    return "cost unknown" if cost_usd is None else f"${cost_usd:.2f}"


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
