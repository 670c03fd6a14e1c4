"""The Coder: writes the kernel of one experiment, and mends it when the judge hands it back.

Asked with a `CodeRequest`; answers with a JSON object (`CodeReply`) and the code: the whole file in a
``hip`` fence, or SEARCH/REPLACE blocks against the Base. A reply without usable code, and a kernel that
is already in the population, go back to the model before they cost an evaluation.
"""

from __future__ import annotations

from pydantic import BaseModel

from .agent import ScientistAgent
from .chat import Progress
from .digest import digest_of
from .interrupts import BadReply
from .messages import CandidateProposal
from .replies import clean, read_json, read_source
from .requests import CodeRequest, PassageView
from .views import attempt_view, kernel_view

__all__ = ["CodeReply", "CoderAgent"]

MAX_SOURCE = 200_000
"""Characters of a candidate's source."""


class CodeReply(BaseModel):
    """The JSON beside the code: what was really implemented, point by point of the rubric."""

    report: str


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
        answer = await self.ask(request, lambda text: self._read(text, base.source))
        assert answer is not None
        source, report = answer
        attempt = len(progress.proposals) + 1
        member = lab.create_candidate(
            source,
            base=base,
            reference_id=reference,
            slot=progress.slot,
            attempt=attempt,
            experiment=experiment,
            report=report,
        )
        return CandidateProposal(candidate_id=member.id, slot=progress.slot, attempt=attempt, report=report)

    def _cited(self, ids: tuple[str, ...]) -> tuple[PassageView, ...]:
        shown = self._lab.shown
        return tuple(shown[one] for one in ids if one in shown)

    def _read(self, text: str, base: str) -> tuple[str, str]:
        source = read_source(text, base)
        try:
            report = clean(read_json(text, CodeReply).report, 4_000)
        except BadReply:
            # The code is what counts; a missing report is said, not invented.
            report = "The Coder gave no report."
        if len(source) > MAX_SOURCE:
            raise BadReply(f"The kernel has {len(source)} characters; at most {MAX_SOURCE} are allowed.")
        if "\x00" in source or any(0xD800 <= ord(c) <= 0xDFFF for c in source):
            raise BadReply("The kernel holds characters that are not text.")
        known = self._lab.population.find(source)
        if known is not None:
            raise BadReply(
                f"This is the same kernel as candidate {known.id}, already tried; make a real change."
            )
        return source, report
