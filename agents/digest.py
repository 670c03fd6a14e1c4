"""What a session has learnt, in a bounded form: a digest that keeps its links to the evidence."""

from __future__ import annotations

from collections.abc import Iterable

from .population import Member, Population
from .replies import clean
from .requests import DigestLine

__all__ = ["calibration_of", "digest_of", "summary_of"]

BEST = 6
LATEST = 8
FAILURES = 4
LINE = 220
"""Characters of one text in a digest line."""


def digest_of(population: Population) -> tuple[DigestLine, ...]:
    """The best results, the latest, and the latest failures; at most ``BEST + LATEST + FAILURES`` lines."""
    tried = [
        member for member in population if member.experiment is not None and member.evaluation is not None
    ]
    passed = sorted((one for one in tried if one.accepted), key=lambda one: -(one.speedup or 0.0))
    failed = [one for one in tried if not one.accepted]
    kept = {one.id: one for one in (*passed[:BEST], *tried[-LATEST:], *failed[-FAILURES:])}
    return tuple(_line(one) for _, one in sorted(kept.items()))


def calibration_of(population: Population) -> str:
    """How well the predictions so far held; empty before the first measurement."""
    findings = [one.finding for one in population if one.finding is not None]
    marks = [one.calibration for one in findings if one.calibration != "not measured"]
    if not marks:
        return ""
    words = ", ".join(f"{marks.count(mark)} {mark}" for mark in ("below", "within", "above"))
    return f"Of {len(marks)} measured predictions: {words} the predicted range."


def summary_of(member: Member) -> str:
    """One line on a member for a list."""
    if member.finding is not None:
        return clean(f"{member.finding.tried} -> {member.finding.happened}", LINE)
    if member.experiment is not None:
        return clean(member.experiment.description, LINE)
    return "the starting kernel" if member.parent_id is None else ""


def _line(member: Member) -> DigestLine:
    assert member.experiment is not None and member.evaluation is not None
    finding = member.finding
    result = member.evaluation.verdict.value
    if member.speedup is not None:
        result += f", {member.speedup:.2f}x the starting kernel"
    if finding is not None and finding.measured_uplift is not None:
        result += f", {finding.measured_uplift:+.1f} % over its Base ({finding.calibration} prediction)"
    elif member.evaluation.message:
        result += f": {_first_line(member.evaluation.message)}"
    return DigestLine(
        candidate_id=member.id,
        strategy=clean(member.experiment.strategy, 40),
        tried=clean(member.experiment.description, LINE),
        result=clean(result, LINE),
        lesson=clean(finding.next, LINE) if finding is not None else "",
    )


def _first_line(text: str) -> str:
    lines: Iterable[str] = (line for line in text.splitlines() if line.strip())
    return next(iter(lines), "")
