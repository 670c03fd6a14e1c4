"""The Coder: writes the kernel of one experiment, and mends it when the judge hands it back.

Asked with a `CodeRequest`; answers with a JSON object (`report`, and `rubric`: what it did of each point) and
the code: the whole file in a ``hip`` fence, or SEARCH/REPLACE blocks against the Base. With `give_up` and no
code it says that the experiment cannot be done, or not be mended. A reply without usable code, and a kernel
that is already in the population, go back to the model before they cost an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .agent import ScientistAgent
from .chat import Progress
from .digest import digest_of
from .interrupts import BadReply, GaveUp
from .messages import CandidateProposal, RubricPoint
from .replies import clean, find_json, read_source
from .requests import CodeRequest, PassageView
from .rubric import account_of
from .views import attempt_view, kernel_view

__all__ = ["CoderAgent"]

MAX_SOURCE = 200_000
"""Characters of a candidate's source."""

NO_REPORT = "The Coder gave no report."


class CoderAgent(ScientistAgent):
    """Turns an experiment into a candidate."""

    async def speak(self, progress: Progress) -> CandidateProposal:
        assert progress.selection is not None
        lab, experiment = self._lab, progress.experiment
        base = lab.population[progress.selection.base_id]
        reference = progress.selection.reference_id
        failed = [lab.population[one.candidate_id] for one in progress.failures]
        request = CodeRequest(
            generation=lab.recorder.generation,
            problem=lab.problem,
            base=kernel_view(base),
            reference=None if reference is None else kernel_view(lab.population[reference]),
            experiment=experiment,
            failures=tuple(attempt_view(one, with_source=one is failed[-1]) for one in failed),
            digest=digest_of(lab.population),
            passages=self._cited(experiment.citations),
        )
        answer = await self.ask(request, lambda text: self._read(text, base.source, experiment.rubric))
        assert answer is not None
        source, report, rubric = answer
        attempt = len(progress.proposals) + 1
        member = lab.create_candidate(
            source,
            base=base,
            reference_id=reference,
            slot=progress.slot,
            attempt=attempt,
            experiment=experiment,
            report=report,
            rubric=rubric,
        )
        return CandidateProposal(
            candidate_id=member.id, slot=progress.slot, attempt=attempt, report=report, rubric=rubric
        )

    def _cited(self, ids: tuple[str, ...]) -> tuple[PassageView, ...]:
        shown = self._lab.shown
        return tuple(shown[one] for one in ids if one in shown)

    def _read(self, text: str, base: str, rubric: Sequence[str]) -> tuple[str, str, tuple[RubricPoint, ...]]:
        said = _said(text)
        try:
            source = read_source(text, base)
        except BadReply:
            reason = said.get("give_up")
            if isinstance(reason, str) and reason.strip():
                raise GaveUp(reason.strip()) from None
            raise
        report = said.get("report")
        # The code is what counts; a missing report is said, not invented.
        told = clean(report, 4_000) if isinstance(report, str) and report.strip() else NO_REPORT
        self._check(source)
        return source, told, account_of(said.get("rubric", report), rubric)

    def _check(self, source: str) -> None:
        if len(source) > MAX_SOURCE:
            raise BadReply(f"The kernel has {len(source)} characters; at most {MAX_SOURCE} are allowed.")
        if "\x00" in source or any(0xD800 <= ord(c) <= 0xDFFF for c in source):
            raise BadReply("The kernel holds characters that are not text.")
        known = self._lab.population.find(source)
        if known is not None:
            raise BadReply(
                f"This is the same kernel as candidate {known.id}, already tried; make a real change."
            )


def _said(text: str) -> dict[str, Any]:
    """The JSON beside the code; empty where there is none that can be read."""
    try:
        return find_json(text)
    except BadReply:
        return {}
