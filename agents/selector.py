"""The Selector: picks the kernel to build on and a contrasting one to learn from.

Where the search policy has chosen, it says so and asks no model. Else its model is asked with a
`SelectRequest` and answers with one JSON object (`SelectReply`); ids that are not in the population and a
Base that was not accepted go back to it.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from kernel_scientist.sandbox.errors import UsageError

from .agent import ScientistAgent
from .chat import Progress
from .digest import digest_of
from .interrupts import BadReply
from .messages import Selection
from .policies.base import Parents
from .replies import clean, read_json
from .requests import SelectRequest
from .views import population_rows

__all__ = ["SelectReply", "SelectorAgent"]


class SelectReply(BaseModel):
    """What the Selector's model answers."""

    base_id: str = Field(max_length=40)
    reference_id: str | None = Field(default=None, max_length=40)
    reasons: str


class SelectorAgent(ScientistAgent):
    """Chooses Base and Reference from the population."""

    async def speak(self, progress: Progress) -> Selection:  # noqa: ARG002 - it needs nothing of what was said
        parents = self._lab.policy.choose(self._lab.situation)
        selection = await self._ask_model() if parents is None else self._as_chosen(parents)
        self._lab.bases[self._lab.recorder.lane] = selection.base_id
        return selection

    async def _ask_model(self) -> Selection:
        population = self._lab.population
        request = SelectRequest(
            generation=self._lab.recorder.generation,
            problem=self._lab.problem,
            population=population_rows(population),
            population_size=len(population),
            digest=digest_of(population),
        )
        selection = await self.ask(request, self._read, form=SelectReply)
        assert selection is not None, "the Selector has no tool that could be enough"
        return selection

    def _as_chosen(self, parents: Parents) -> Selection:
        """The policy's choice as a message. A custom policy may be wrong; that is its author's to mend."""
        population = self._lab.population
        reference = parents.reference_id
        if parents.base_id not in population or not population[parents.base_id].accepted:
            fault = f"'{parents.base_id}' as Base, which is no accepted kernel"
        elif reference is not None and reference not in population:
            fault = f"'{reference}' as Reference, which is no kernel"
        else:
            return Selection(
                base_id=parents.base_id,
                reference_id=None if reference == parents.base_id else reference,
                reasons=clean(parents.reasons, 2_000),
                goal=clean(parents.goal, 1_000),
                chosen_by="policy",
            )
        raise UsageError(
            f"The search policy '{self._lab.policy.name}' chose {fault} of this run; mend its choose()."
        )

    def _read(self, text: str) -> Selection:
        reply = read_json(text, SelectReply)
        population = self._lab.population
        if reply.base_id not in population:
            raise BadReply(
                f"There is no candidate '{clean(reply.base_id, 60)}' to be the Base; use an id of the list."
            )
        if not population[reply.base_id].accepted:
            raise BadReply(
                f"Candidate {reply.base_id} was not accepted; the Base must be an accepted kernel."
            )
        reference = reply.reference_id
        if reference in ("", "none", "None", reply.base_id):
            reference = None
        if reference is not None and reference not in population:
            raise BadReply(
                f"There is no candidate '{clean(reference, 60)}' to be the Reference; use an id of the list."
            )
        return Selection(base_id=reply.base_id, reference_id=reference, reasons=clean(reply.reasons, 2_000))
