"""A run told in order: the agents in turn, what they cited, each candidate's diff, verdict and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kernel_scientist.agents import Run
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import Experiment, Finding, Hypotheses, Selection
from kernel_scientist.tools.describe import resources_line

from .judged import how_compared, timing_lines, verdict_line
from .lines import event_line, reference
from .output import Style
from .text import clean, cut, interval, one_line, quote, times

__all__ = ["story_lines"]

Line = tuple[str, Style]

_DIFF_LIMIT, _DIFF_WIDTH = 400, 500


def story_lines(
    run: Run, events: Iterable[ev.Event], place_of: Callable[[str], str], *, diffs: bool = True
) -> Iterator[Line]:
    """Lines with their styles; each ends with the event that its figures come from.

    `place_of` tells of a passage's id the document, section and page, as far as they are known.
    """
    yield f"record: {run.path / 'events.jsonl'}; [#n] is its line with seq n", "dim"
    speaker = ""
    cited: set[str] = set()
    for event in events:
        if isinstance(event, (ev.SpeakerSelected, ev.MessageSent)) and event.agent != speaker:
            speaker = event.agent
            yield "", ""
            yield f"{speaker.capitalize()} {reference(event)}", "heading"
        yield from _told(event, diffs, cited, place_of)
        if isinstance(event, (ev.MessageSent, ev.GenerationStarted)):
            # Each turn gets a heading of its own, also when the same agent is chosen again.
            speaker = ""


def _told(event: ev.Event, diffs: bool, cited: set[str], place_of: Callable[[str], str]) -> Iterator[Line]:
    match event:
        case ev.GenerationStarted():
            yield "", ""
            best = f"{event.best_id} at {times(event.best_speedup)}" if event.best_speedup else event.best_id
            head = f"generation {event.generation} of {event.generations}, best so far {best}"
            yield f"{head} {reference(event)}", "heading"
        case ev.MessageSent():
            yield f"  says {reference(event)}", "dim"
            yield from _message(event, place_of)
        case ev.ModelCall():
            yield f"  {_call(event)} {reference(event)}", "dim"
            thought = str((event.response or {}).get("thought") or "").strip()
            if thought:
                yield "    the model's own reasoning:", "dim"
                yield quote(thought, "    "), "dim"
        case ev.PassagesRetrieved():
            yield from _passages(event, cited)
        case ev.CandidateCreated():
            yield from _candidate(event, diffs)
        case ev.EvaluationFinished():
            yield from _evaluation(event)
        case ev.ComparisonFinished():
            yield from _comparison(event)
        case ev.SpeakerSelected() | ev.EvaluationStarted() | ev.RunFinished():
            return
        case _:
            line = event_line(event)
            if line is not None:
                yield f"  {line} {reference(event)}", ""


def _message(event: ev.MessageSent, place_of: Callable[[str], str]) -> Iterator[Line]:
    match event.content:
        case Selection() as choice:
            yield f"  Base {choice.base_id}, Reference {choice.reference_id or 'none'}", ""
            yield quote(choice.reasons), ""
            if choice.goal:
                yield quote(choice.goal), ""
        case Hypotheses() as plan:
            yield from _hypotheses(plan, place_of)
        case Finding() as finding:
            yield from _finding(finding)
        case _:
            yield quote(event.text), ""


def _hypotheses(plan: Hypotheses, place_of: Callable[[str], str]) -> Iterator[Line]:
    if plan.nothing_to_try:
        yield quote(plan.nothing_to_try), ""
        return
    for number, avenue in enumerate(plan.avenues, start=1):
        yield f"  avenue {number}: {one_line(f'{avenue.title}. {avenue.rationale}')}", ""
    chosen = {choice.experiment: choice.criterion for choice in plan.chosen}
    for number, one in enumerate(plan.experiments):
        yield from _experiment(number, one, chosen.get(number), place_of)
    if plan.counts:
        yield f"  {one_line(plan.counts)}", ""
    for refusal in plan.refused:
        yield f"  experiment {refusal.experiment + 1} {refusal.text}, so it does not run", ""


def _experiment(
    number: int, one: Experiment, criterion: str | None, place_of: Callable[[str], str]
) -> Iterator[Line]:
    runs = f"runs: {criterion}" if criterion is not None else "not run"
    strategy = f", {one_line(one.strategy, 40)}"
    yield f"  experiment {number + 1} ({runs}{strategy}): {one_line(one.description)}", ""
    predicted = f"predicted {one.uplift_min:+.0f} % to {one.uplift_max:+.0f} %"
    innovation = f", innovation {one.innovation:.0f} of 100"
    yield f"      {predicted}{innovation}", ""
    for item in one.rubric:
        yield f"      - {one_line(item)}", ""
    for name in one.citations:
        place = place_of(name)
        yield f"      cites {one_line(f'{name}: {place}' if place else name)}", ""


def _finding(finding: Finding) -> Iterator[Line]:
    yield f"  tried: {one_line(finding.tried)}", ""
    yield f"  happened: {one_line(finding.happened)}", ""
    measured = "not measured" if finding.measured_uplift is None else f"{finding.measured_uplift:+.1f} %"
    predicted = f"predicted {finding.predicted_min:+.0f} % to {finding.predicted_max:+.0f} %"
    yield f"  uplift over the Base: {measured}, {predicted}: {finding.calibration}", ""
    if finding.next:
        yield f"  next: {one_line(finding.next)}", ""


def _call(event: ev.ModelCall) -> str:
    cost = "cost unknown" if event.cost_usd is None else f"${event.cost_usd:.4f}"
    about = "about " if event.usage.estimated else ""
    text = (
        f"model {event.model} ({event.purpose}): {about}{event.usage.prompt_tokens} + "
        f"{event.usage.completion_tokens} tokens, {cost}, {event.seconds:.2f} s"
    )
    return text if event.error is None else f"{text}; try {event.attempt} failed: {one_line(event.error)}"


def _passages(event: ev.PassagesRetrieved, cited: set[str]) -> Iterator[Line]:
    yield f"  looked up '{one_line(event.query)}' {reference(event)}", ""
    for passage in event.passages:
        if passage.id in cited:
            yield f"    {passage.id}: as above", "dim"
            continue
        cited.add(passage.id)
        place = f", {passage.section}" if passage.section else ""
        page = f", page {passage.page}" if passage.page is not None else ""
        yield f"    {passage.id}: {one_line(passage.title + place + page)}", ""
        looked_up = f", looked up {passage.looked_up}" if passage.looked_up else ""
        for source in one_line(passage.source).split():
            yield f"        {source}{looked_up}", "dim"


def _candidate(event: ev.CandidateCreated, diffs: bool) -> Iterator[Line]:
    if event.parent_id is None:
        yield f"  candidate {event.candidate_id}: the starting kernel, {event.path} {reference(event)}", ""
        return
    yield f"  candidate {event.candidate_id} from Base {event.parent_id}: {event.path} {reference(event)}", ""
    if not diffs:
        return
    lines = clean(event.diff).split("\n")
    for line in lines[:_DIFF_LIMIT]:
        yield f"    {cut(line, _DIFF_WIDTH)}", {"+": "good", "-": "bad"}.get(line[:1], "")
    if len(lines) > _DIFF_LIMIT:
        yield f"    ({len(lines) - _DIFF_LIMIT} more lines; `transcript code` has them)", "dim"


def _evaluation(event: ev.EvaluationFinished) -> Iterator[Line]:
    one = event.evaluation
    style = "good" if one.accepted else "bad"
    how = f"in {event.seconds:.1f} s"
    if event.reused_from:
        how = f"taken over from {event.reused_from}, the same program"
    yield f"  judge on {event.candidate_id}: {verdict_line(one)}, {how} {reference(event)}", style
    if not one.accepted:
        yield quote(one.message, "    "), ""
    for check in one.checks:
        if not check.passed:
            yield f"    FAILED {one_line(f'{check.name}: {check.detail}', 500)}", "bad"
    passed = [one_line(check.name) for check in one.checks if check.passed]
    if passed:
        yield f"    passed: {', '.join(passed)}", "dim"
    if one.timings:
        yield from ((f"    {line}", "") for line in timing_lines(one.timings))
    for resources in one.resources:
        yield f"    gfx942 {one_line(resources_line(resources))}", "dim"


def _comparison(event: ev.ComparisonFinished) -> Iterator[Line]:
    one = event.comparison
    claim = "an improvement" if event.improved else "no improvement shown"
    head = f"{event.b_id} against {event.a_id} {how_compared(one.b.target)}: {interval(one.speedup)}, {claim}"
    yield f"  {head}, in {event.seconds:.1f} s {reference(event)}", "good" if event.improved else "bad"
    yield from ((f"    {line}", "") for line in timing_lines(one.timings))
