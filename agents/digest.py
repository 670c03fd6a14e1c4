"""What a session has learnt, in a bounded form: a digest that keeps its links to the evidence."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from kernel_scientist.knowledge.tokens import count_tokens

from .population import Member, Population
from .replies import clean
from .requests import DigestLine

__all__ = ["TOKENS", "digest_of", "result_of", "summary_of"]

TOKENS = 2_500
"""What a digest may take of a prompt."""

BEST = 5
LATEST = 7
FAILURES = 4
LINE = 220
"""Characters of one text in a digest line."""


def digest_of(population: Population) -> tuple[DigestLine, ...]:
    """The best results, the latest, the latest failures, the best of each strategy; the first matter most.

    At most `TOKENS` tokens, however long the run; each line names its candidate and the judge's event.
    """
    tally = population.tally
    passed = (one for one in tally.fastest if one.experiment is not None)
    wanted = (
        *islice(passed, BEST),
        *tally.tried[-LATEST:],
        *tally.failed[-FAILURES:],
        *tally.champions,
    )
    kept: dict[str, DigestLine] = {}
    room = TOKENS
    for member in {one.id: one for one in wanted}.values():
        line = _line(member)
        room -= _tokens(line.model_dump_json(exclude_none=True))
        if room < 0:
            break
        kept[member.id] = line
    return tuple(line for _, line in sorted(kept.items()))


def summary_of(member: Member) -> str:
    """One line on a member for a list."""
    if member.finding is not None:
        return clean(f"{member.finding.tried} -> {member.finding.happened}", LINE)
    if member.experiment is not None:
        return clean(member.experiment.description, LINE)
    return "the starting kernel" if member.parent_id is None else ""


def result_of(member: Member) -> str:
    """Verdict and figures of a judged member in a line."""
    assert member.evaluation is not None
    finding = member.finding
    result = member.evaluation.verdict.value
    if member.speedup is not None:
        result += f", {member.speedup:.2f}x the starting kernel"
    if finding is not None and finding.measured_uplift is not None:
        result += f", {finding.measured_uplift:+.1f} % over its Base ({finding.calibration} prediction)"
    elif member.evaluation.message:
        result += f": {_first_line(member.evaluation.message)}"
    return clean(result, LINE)


# Most lines of a digest were in the one before.
_tokens = lru_cache(maxsize=512)(count_tokens)


def _line(member: Member) -> DigestLine:
    assert member.experiment is not None
    finding = member.finding
    return DigestLine(
        candidate_id=member.id,
        event=member.evidence,
        strategy=member.experiment.strategy,
        tried=clean(member.experiment.description, LINE),
        result=result_of(member),
        lesson=clean(finding.next, LINE) if finding is not None else "",
    )


def _first_line(text: str) -> str:
    lines: Iterable[str] = (line for line in text.splitlines() if line.strip())
    return next(iter(lines), "")
