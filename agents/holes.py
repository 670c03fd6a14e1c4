"""A record with lines missing: what can be told of them, and how far a conversation holds together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError

from . import events as ev
from .chat import as_message, follow
from .messages import CandidateProposal, Content, EvaluationFailure, Finding, Selection
from .run import Candidate, Run

__all__ = ["consistent", "with_gaps_filled"]


def consistent(said: Sequence[ev.MessageSent], known: Collection[str]) -> list[ev.MessageSent]:
    """The messages up to the first that does not follow from those before it, or names an unknown kernel."""
    kept: list[ev.MessageSent] = []
    for message in said:
        expected = follow([as_message(one.content, one.agent) for one in kept]).speaker
        if message.agent != expected or any(name not in known for name in _names(message.content)):
            break
        kept.append(message)
    return kept


def _names(content: Content) -> list[str]:
    match content:
        case Selection():
            return [name for name in (content.base_id, content.reference_id) if name is not None]
        case CandidateProposal() | EvaluationFailure() | Finding():
            return [content.candidate_id]
        case _:
            return []


def with_gaps_filled(run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates with those whose line is lost in their places, from their files and later lines.

    Nothing is known of where such a one came from. Raises `UsageError` where its kernel is lost too.
    """
    known = {int(one.id): one for one in candidates}
    judged: dict[str, ev.EvaluationFinished] | None = None
    whole: list[Candidate] = []
    # One after the other: a forged id may be far beyond the others.
    for number in range(max(known, default=-1) + 1):
        found = known.get(number)
        if found is None:
            name = f"{number:04d}"
            path = _kernel_of(run, name)
            if judged is None:
                judged = {e.candidate_id: e for e in run.events() if isinstance(e, ev.EvaluationFinished)}
            found = _from_its_files(path, name, judged.get(name))
        whole.append(found)
    return whole


def _kernel_of(run: Run, name: str) -> Path:
    path = run.path / "candidates" / name / "kernel.hip"
    if not path.is_file():
        raise UsageError(
            f"{run.path / 'events.jsonl'}: the line of candidate {name} is damaged, and {path} is missing; "
            "put a copy of one of the two back, or start a new run."
        )
    return path


def _from_its_files(path: Path, name: str, judged: ev.EvaluationFinished | None) -> Candidate:
    accepted = judged is not None and judged.evaluation.accepted
    return Candidate(
        id=name, parent_id=None, reference_id=None, generation=0, slot=None, attempt=1,
        status="created" if judged is None else "accepted" if accepted else "failed",
        path=path, key="", diff="", report="", evaluation=None if judged is None else judged.evaluation,
        experiment=None, finding=None, twin_id=None if judged is None else judged.reused_from,
        evidence=None if judged is None else judged.seq,
    )  # fmt: skip
