"""The Benchmarker: has the candidate judged and writes what was learnt.

Asked with a `BenchmarkRequest`; its model calls ``evaluate_kernel(candidate_id)`` and answers with one JSON
object (`FindingReply`). When the model does not call the tool, the agent does and asks again with the result
in the request. A failed candidate with tries left goes back to the Coder without a finding. The figures of
a finding are the judge's; without a usable answer they stand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from autogen_core.tools import BaseTool, FunctionTool
from pydantic import BaseModel

from kernel_scientist.tools.evaluate import describe

from .agent import ScientistAgent
from .chat import Progress
from .interrupts import BadReply, ModelUnavailable
from .messages import EvaluationFailure, Experiment, Finding
from .population import Member
from .replies import clean, quote_json, read_json
from .requests import BenchmarkRequest
from .views import EVIDENCE, result_view, uplift

__all__ = ["BenchmarkerAgent", "FindingReply", "calibrate", "finding_on"]

TOOL_ROUNDS = 3


class FindingReply(BaseModel):
    """What the Benchmarker's model answers."""

    tried: str
    happened: str
    next: str = ""


class BenchmarkerAgent(ScientistAgent):
    """Evaluates the candidate and judges the hypothesis."""

    async def speak(self, progress: Progress) -> EvaluationFailure | Finding:
        assert progress.selection is not None
        proposal = progress.proposals[-1]
        member = self._lab.population[proposal.candidate_id]
        base = self._lab.population[progress.selection.base_id]
        request = BenchmarkRequest(
            generation=self._lab.recorder.generation,
            candidate_id=member.id,
            base_id=base.id,
            base_speedup=base.speedup,
            experiment=progress.experiment,
            report=proposal.report,
            rubric=proposal.rubric,
        )
        if progress.given_up and member.evaluation is not None:
            reply = await self._reply_on(request, member, base)
        else:
            reply = await self._reply(request, member, base, progress)
        left = self._tries_left(progress, member)
        if left:
            assert member.evaluation is not None
            return EvaluationFailure(
                candidate_id=member.id,
                slot=progress.slot,
                attempt=proposal.attempt,
                verdict=member.evaluation.verdict.value,
                evidence=clean(member.evaluation.message, EVIDENCE),
                tries_left=left,
            )
        finding = finding_on(member, base, progress.slot, progress.experiment, reply)
        self._lab.population.conclude(member, finding)
        return finding

    async def _reply(
        self, request: BenchmarkRequest, member: Member, base: Member, progress: Progress
    ) -> FindingReply | None:
        """The model's words; ``None`` when it gave none, or when none are needed yet."""
        tool = self._tool(base)

        def read(text: str) -> FindingReply | None:
            # Words on a kernel that was not judged when they were written are not a finding.
            return None if member.evaluation is None else _read(text)

        def enough() -> bool:
            return self._tries_left(progress, member) > 0

        reply: FindingReply | None = None
        try:
            reply = await self.ask(
                request, read, tools=[tool], tool_rounds=TOOL_ROUNDS, enough=enough, form=FindingReply
            )
        except (BadReply, ModelUnavailable) as fault:
            self._note(fault)
        if member.evaluation is None:
            await self.use(tool, {"candidate_id": member.id})
            if not enough():
                reply = await self._reply_on(request, member, base)
        return reply

    async def _reply_on(self, request: BenchmarkRequest, member: Member, base: Member) -> FindingReply | None:
        """Ask once more, with the result in the request."""
        assert member.evaluation is not None
        result = result_view(member, base, describe(member.evaluation))
        try:
            return await self.ask(request.model_copy(update={"result": result}), _read, form=FindingReply)
        except (BadReply, ModelUnavailable) as fault:
            self._note(fault)
            return None

    def _note(self, fault: Exception) -> None:
        self._lab.note(self.name, f"no usable finding: {fault}")

    def _tries_left(self, progress: Progress, member: Member) -> int:
        if member.evaluation is None or member.evaluation.accepted:
            return 0
        return progress.tries_left(member.evaluation.verdict.value)

    def _tool(self, base: Member) -> BaseTool[Any, Any]:
        async def evaluate_kernel(candidate_id: Annotated[str, "the id of the candidate"]) -> str:
            population = self._lab.population
            if candidate_id not in population:
                return quote_json({"error": f"there is no candidate '{clean(candidate_id, 40)}'"})
            evaluation = await self._lab.evaluate(candidate_id)
            result = result_view(population[candidate_id], base, describe(evaluation))
            return quote_json(result.model_dump(mode="json"))

        return FunctionTool(
            evaluate_kernel,
            name="evaluate_kernel",
            description="Compile, check and time a candidate by id. Asked again, it answers the same.",
        )


def _read(text: str) -> FindingReply:
    return read_json(text, FindingReply)


def calibrate(
    experiment: Experiment, measured: float | None
) -> Literal["below", "within", "above", "not measured"]:
    """Where the measured uplift lies against the predicted range."""
    if measured is None:
        return "not measured"
    if measured < experiment.uplift_min:
        return "below"
    return "above" if measured > experiment.uplift_max else "within"


def finding_on(
    member: Member, base: Member, slot: int, experiment: Experiment, reply: FindingReply | None
) -> Finding:
    """The finding on a judged member; without words of a model's the judge's figures stand alone."""
    evaluation = member.evaluation
    assert evaluation is not None
    measured = uplift(member, base)
    words: Sequence[str] = (
        (reply.tried, reply.happened, reply.next)
        if reply is not None
        else (experiment.description, evaluation.message or f"It was {evaluation.verdict.value}.", "")
    )
    tried, happened, following = (clean(text.strip(), 1_000) for text in words)
    return Finding(
        candidate_id=member.id,
        slot=slot,
        verdict=evaluation.verdict.value,
        tried=tried,
        happened=happened,
        next=following,
        predicted_min=experiment.uplift_min,
        predicted_max=experiment.uplift_max,
        measured_uplift=measured,
        speedup=member.speedup,
        time_us=evaluation.time_us,
        calibration=calibrate(experiment, measured),
        author="agent" if reply is None else "model",
    )
