"""``report.md`` of a run: what was asked, tried and found, for a colleague to read.

It is made of the run's own record and nothing else. Every figure is followed by the event that it comes
from: ``#42`` is the line of ``events.jsonl`` with `seq` 42.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_scientist.sandbox.files import atomic_write, explained
from kernel_scientist.tools.evaluation import Interval, ShapeTiming
from kernel_scientist.tools.problem import RECORDED

from .markdown import code, count, plain, table
from .messages import Experiment
from .report_end import cost, literature, reproduce
from .report_facts import Facts, collect_facts, ref
from .rubric import told
from .run import BASELINE_ID, Candidate, Run

__all__ = ["REPORT_FILE", "report_text", "write_report"]

REPORT_FILE = "report.md"

_ENDS = {
    "improved": "A faster kernel was found and confirmed.",
    "not_improved": "Nothing correct was found to be faster than the starting kernel.",
    "limit": "A limit stopped the run; it can be resumed.",
    "interrupted": "The run was interrupted; it can be resumed.",
    "failed": "The run failed.",
    "running": "The run goes on.",
}


def write_report(run: Run) -> Path:
    """Write the report of a run into its folder, over an older one. Raises `UsageError` where it cannot."""
    path = run.path / REPORT_FILE
    text = report_text(run)
    with explained("write the run's report", path):
        atomic_write(path, text)
    return path


def report_text(run: Run) -> str:
    """The report as Markdown."""
    facts = collect_facts(run)
    parts = (_summary, _question, _method, _tried, _worked, _failed, cost, literature, reproduce)
    lines = [line for part in parts for line in part(facts)]
    return "\n".join(lines).rstrip() + "\n"


def _summary(facts: Facts) -> Iterator[str]:
    info = facts.info
    yield f"# {plain(info.problem)}: report of run {plain(info.id)}"
    yield ""
    yield f"{_ENDS[info.status]} {_claim(facts)}".rstrip()
    why = plain(info.stop_reason).rstrip(".") or "not recorded"
    yield f"Why it ended: {why}{ref(facts.finished)}."
    yield ""


def _claim(facts: Facts) -> str:
    info = facts.info
    if info.best is None:
        return ""
    best = _link(info.best.candidate_id)
    how = f"measured at tier '{info.best.tier}' and not confirmed"
    seq = facts.evidence(info.best.candidate_id)
    if facts.confirmed is not None:
        how, seq = _how_confirmed(facts), facts.confirmed.seq
    return f"Candidate {best}: {_interval(info.best.speedup)} over the starting kernel, {how}{ref(seq)}."


def _how_confirmed(facts: Facts) -> str:
    recorded = facts.info.target.startswith(RECORDED)
    return "by the recording" if recorded else "confirmed in fresh pairs"


def _question(facts: Facts) -> Iterator[str]:
    info, started = facts.info, facts.started
    yield "## Question"
    yield ""
    yield (
        f"Can the kernel {code(Path(info.kernel).name or 'of the problem')} of the problem "
        f"{code(info.problem)} be made faster on {plain(info.device or info.target)}, target "
        f"{code(info.target)}{ref(started)}?"
    )
    baseline = facts.candidate(BASELINE_ID)
    if baseline is not None and baseline.evaluation is not None and baseline.evaluation.timings:
        yield ""
        yield f"What the starting kernel takes there{ref(baseline.evidence)}:"
        yield ""
        rows = [(_shape(one), _time(one.time_us), _quartiles(one)) for one in baseline.evaluation.timings]
        yield from table(("shape", "time", "quartiles"), rows)
    else:
        yield ""


def _method(facts: Facts) -> Iterator[str]:
    info = facts.info
    models = ", ".join(f"{plain(agent)}: {code(model)}" for agent, model in info.models.items())
    yield "## Method"
    yield ""
    yield (
        "A Selector picks a Base to build on, a Researcher looks up literature and designs experiments, a "
        "Coder writes the kernel of each, and a Benchmarker has it judged and writes down what was found. "
        f"Models: {models or 'not recorded'}. Search policy: {code(info.policy)}."
    )
    yield ""
    baseline = facts.candidate(BASELINE_ID)
    evaluation = None if baseline is None else baseline.evaluation
    if evaluation is not None:
        seq = baseline.evidence if baseline is not None else None
        how = plain(evaluation.method or "no account of how was timed")
        yield f"The judge, with candidates in the sandbox {plain(evaluation.sandbox)}: {how}{ref(seq)}."
        yield ""
        yield from (f"- {plain(note)}" for note in evaluation.notes)
        yield ""
    yield (
        "Speed-ups are the starting kernel's time over the candidate's, with the interval that holds the "
        "true value at the level beside it. Uplifts are percent over the experiment's Base."
    )
    yield ""
    for one in facts.sittings:
        notes = f": {plain('; '.join(one.notes))}" if one.notes else ""
        yield f"- The run went on in another process, its sitting {one.sitting}{ref(one.seq)}{notes}."
    yield from [""] if facts.sittings else []


def _tried(facts: Facts) -> Iterator[str]:
    yield "## What was tried and why"
    yield ""
    if not facts.generations:
        yield "No generation was begun."
        yield ""
    for number in sorted(facts.generations):
        generation = facts.generations[number]
        yield f"### Generation {number}"
        yield ""
        if generation.selection is not None:
            chosen, seq = generation.selection
            other = f", with {_link(chosen.reference_id)} as contrast" if chosen.reference_id else ""
            yield f"Base {_link(chosen.base_id)}{other}{ref(seq)}. Reasons: {plain(chosen.reasons)}"
            yield ""
        if generation.plan is not None and generation.plan[0].nothing_to_try:
            yield f"Nothing to try{ref(generation.plan[1])}: {plain(generation.plan[0].nothing_to_try)}"
            yield ""
        made = [one for one in facts.candidates if one.generation == number]
        if made:
            rows = [_row(facts, one) for one in made]
            header = (
                "candidate",
                "experiment",
                "strategy",
                "predicted uplift",
                "measured uplift",
                "speed-up",
            )
            yield from table(header, rows)
            yield from _against_rubric(made)


def _against_rubric(made: Sequence[Candidate]) -> Iterator[str]:
    """What the Coder says that it did of each experiment's rubric."""
    asked = [one for one in made if one.experiment is not None and one.experiment.strategy != "portfolio"]
    for one in asked:
        yield f"- {_link(one.id)}: {plain(told(one.rubric), 600)}."
    yield from [""] if asked else []


def _row(facts: Facts, one: Candidate) -> tuple[str, ...]:
    experiment, finding = one.experiment, one.finding
    again = f" (attempt {one.attempt})" if one.attempt > 1 else ""
    uplift = None if finding is None else finding.measured_uplift
    said = facts.findings.get(one.id)
    return (
        f"{_link(one.id)}{again}",
        "not recorded"
        if experiment is None
        else plain(experiment.description, 240) + _cites(facts, experiment),
        "" if experiment is None else plain(experiment.strategy, 40),
        _predicted(facts, one),
        "not measured" if uplift is None else f"{uplift:+.1f} %{ref(said)}",
        _outcome(one),
    )


def _predicted(facts: Facts, one: Candidate) -> str:
    if one.experiment is None:
        return ""
    generation = facts.generations.get(one.generation)
    seq = generation.plan[1] if generation is not None and generation.plan is not None else None
    return f"{one.experiment.uplift_min:+.0f} % to {one.experiment.uplift_max:+.0f} %{ref(seq)}"


def _outcome(one: Candidate) -> str:
    if one.evaluation is None:
        return "not judged"
    if not one.evaluation.accepted:
        return f"{one.evaluation.verdict.value}{ref(one.evidence)}"
    return f"{_interval(one.evaluation.speedup)}{ref(one.evidence)}"


def _worked(facts: Facts) -> Iterator[str]:
    yield "## What worked"
    yield ""
    best = facts.candidate(facts.info.best.candidate_id) if facts.info.best is not None else None
    if best is None:
        yield "Nothing was faster than the starting kernel beyond doubt."
        yield ""
        return
    line = facts.lineage(best)
    yield f"The best kernel is {_link(best.id)}, by way of {' → '.join(_link(one.id) for one in line)}:"
    yield ""
    for one in line[1:]:
        said = one.finding.tried if one.finding is not None else ""
        text = said or (one.experiment.description if one.experiment is not None else "no account")
        yield f"- {_link(one.id)}: {plain(text)} {_outcome(one)}."
    yield ""
    timings, seq = facts.best_timings(best)
    if timings:
        what = "Its times from the recording" if facts.info.target.startswith(RECORDED) else "Its times"
        yield f"{what}{ref(seq)}:"
        yield ""
        rows = [(_shape(one), _time(one.time_us), _quartiles(one), _interval(one.speedup)) for one in timings]
        yield from table(("shape", "time", "quartiles", "speed-up"), rows)
    yield "The change against the starting kernel is [best/changes.diff](best/changes.diff)."
    yield ""


def _failed(facts: Facts) -> Iterator[str]:
    yield "## What did not work"
    yield ""
    failed = [one for one in facts.tried if one.status == "failed"]
    slower = [one for one in facts.tried if one.status == "accepted" and (facts.uplift(one) or 0.0) <= 0.0]
    if not failed and not slower:
        yield "Every candidate was right and faster than its Base."
        yield ""
    for one in failed:
        message = one.evaluation.message.strip().splitlines() if one.evaluation is not None else []
        said = plain(message[0], 200) if message else "no evidence was kept"
        yield f"- {_link(one.id)}: {_outcome(one)}: {said}"
    for one in slower:
        uplift, seq = facts.uplift(one), facts.findings.get(one.id)
        measured = "no uplift was measured" if uplift is None else f"{uplift:+.1f} % over its Base{ref(seq)}"
        lesson = f": {plain(one.finding.next, 200)}" if one.finding is not None and one.finding.next else ""
        yield f"- {_link(one.id)}: right, {measured}{lesson}"
    if failed or slower:
        yield ""
    yield from _errors(facts)
    marks = [one.finding.calibration for one in facts.tried if one.finding is not None]
    judged = [mark for mark in marks if mark != "not measured"]
    if judged:
        words = ", ".join(f"{judged.count(mark)} {mark}" for mark in ("below", "within", "above"))
        refs = _refs(facts.findings[one.id] for one in facts.tried if one.id in facts.findings)
        yield f"Of {count(len(judged), 'measured prediction')}, {words} the predicted range {refs}."
        yield ""


def _errors(facts: Facts) -> Iterator[str]:
    for error in facts.errors[:20]:
        outcome = "the session went on" if error.recovered else "the session ended"
        yield f"- In {plain(error.where, 60)}: {plain(error.message, 200)}; {outcome}{ref(error.seq)}."
    if len(facts.errors) > 20:
        yield f"- {len(facts.errors) - 20} more errors are in the record."
    if facts.errors:
        yield ""


def _link(candidate_id: str) -> str:
    name = "".join(one for one in candidate_id if one.isalnum())
    return f"[{name}](candidates/{name}/kernel.hip)"


def _refs(seqs: Iterator[int]) -> str:
    found = list(seqs)
    shown = ", ".join(f"#{seq}" for seq in found[:12])
    return f"({shown}{' and others' if len(found) > 12 else ''})"


def _cites(facts: Facts, experiment: Experiment) -> str:
    names = [name for name in experiment.citations if name in facts.cited]
    return f" Cites {', '.join(map(code, names))}." if names else ""


def _interval(value: Interval | None) -> str:
    if value is None:
        return "not measured"
    return f"{value.value:.2f}x ({value.low:.2f}x to {value.high:.2f}x at {value.level * 100:.3g} %)"


def _shape(timing: ShapeTiming) -> str:
    return " ".join(f"{plain(name)}={size}" for name, size in timing.shape.items())


def _quartiles(timing: ShapeTiming) -> str:
    return f"{_time(timing.low_us)} to {_time(timing.high_us)}"


def _time(microseconds: float) -> str:
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"
