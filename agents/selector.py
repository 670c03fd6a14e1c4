"""The Selector: picks the kernel to build on and a contrasting one to learn from.

Asked with a `SelectRequest`; answers with one JSON object (`SelectReply`). Ids that are not in the request
and a Base that was not accepted go back to the model.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from .agent import ScientistAgent
from .chat import Progress
from .digest import digest_of
from .interrupts import BadReply
from .messages import Selection
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
        population = self._lab.population
        request = SelectRequest(
            generation=self._lab.recorder.generation,
            problem=self._lab.problem,
            population=population_rows(population),
            population_size=len(population),
            digest=digest_of(population),
        )
        selection = await self.ask(request, self._read)
        assert selection is not None, "the Selector has no tool that could be enough"
        return selection

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
