"""A lane: one conversation after another. Several go on side by side, so that models' latency is hidden."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from . import events as ev
from .agent import ScientistAgent
from .benchmarker import BenchmarkerAgent
from .chat import BENCHMARKER, CODER, RESEARCHER, SELECTOR, as_message, content_of, make_team
from .coder import CoderAgent
from .lab import Lab
from .messages import GenerationTask, Hypotheses, Selection
from .models.recording import RecordingClient
from .past import Conversation
from .requests import UnderWay
from .researcher import ResearcherAgent
from .selector import SelectorAgent
from .setup import AGENTS, Setup

__all__ = ["Lane", "lane_of"]

_LEAVE_S = 30.0
"""So long a cancelled conversation may take to end by itself."""


def lane_of(generation: int, lanes: int) -> int:
    """The lane of a generation: always the same one, so that a recorded run can be played back."""
    return (generation - 1) % lanes + 1


class Lane:
    """One lane, with a lab of its own on what all lanes share, and a client for each agent."""

    def __init__(self, number: int, setup: Setup, shared: Lab) -> None:
        self.number = number
        self._setup = setup
        self.lab = shared.for_lane(number)
        self._clients = {name: RecordingClient(setup.models[name], name, self.lab) for name in AGENTS}

    async def converse(self, generation: int, past: Conversation | None) -> str | None:
        """One conversation, from where `past` left it; returns why there is nothing more to try.

        Raises whatever must end the session.
        """
        lab = self.lab
        lab.recorder = lab.recorder.at(lane=self.number, generation=generation)
        lab.failure = None
        if past is None or not past.started:
            self._announce()
        said = self._recall(past) if past is not None else []
        conversation = asyncio.ensure_future(self._talk(self._task(generation), said))
        try:
            hypotheses = await asyncio.shield(conversation)
        except asyncio.CancelledError:
            # The chat is told to stop and left to end by itself: a cancelled AutoGen team may hang.
            lab.stop.set("cancelled")
            lab.stop.hurry()
            await asyncio.wait({conversation}, timeout=_LEAVE_S)
            raise
        lab.running.pop(self.number, None)
        lab.bases.pop(self.number, None)
        if lab.failure is not None:
            raise lab.failure
        return hypotheses.nothing_to_try if hypotheses is not None else None

    def _announce(self) -> None:
        lab = self.lab
        best = lab.population.best
        lab.recorder.emit(
            ev.GenerationStarted,
            generations=lab.config.generations,
            best_id=best.id,
            best_speedup=best.speedup,
            totals=lab.budget.totals,
        )

    def _task(self, generation: int) -> GenerationTask:
        config = self.lab.config
        return GenerationTask(
            generation=generation,
            generations=config.generations,
            experiments=config.experiments,
            build_repairs=config.repairs.build,
            result_repairs=config.repairs.result,
        )

    def _recall(self, past: Conversation) -> list[ev.MessageSent]:
        """What was said before; answers that the interrupted turn already had are not paid for again."""
        said = list(past.said)
        proposal = past.unsaid_proposal()
        if proposal is not None:
            said.append(
                self.lab.recorder.emit(ev.MessageSent, agent=CODER, content=proposal, text=proposal.text)
            )
            past.answers.clear()
        for agent, answered in past.answered.items():
            answers = past.answers.get(agent, [])
            self._clients[agent].recall(answers, turn=answered - len(answers))
        return said

    async def _talk(self, task: GenerationTask, said: Sequence[ev.MessageSent]) -> Hypotheses | None:
        team = make_team(self._agents(), self._clients[SELECTOR])
        opening = [as_message(task, "manager"), *(as_message(one.content, one.agent) for one in said)]
        base_id = ""
        hypotheses: Hypotheses | None = None
        async for message in team.run_stream(task=opening):
            match content_of(message):
                case Selection() as choice:
                    base_id = choice.base_id
                case Hypotheses() as plan:
                    hypotheses = plan
                    self.lab.running[self.number] = _under_way(base_id, plan)
                case _:
                    pass
        return hypotheses

    def _agents(self) -> list[ScientistAgent]:
        return [self._agent(name) for name in AGENTS]

    def _agent(self, name: str) -> ScientistAgent:
        replaced = self._setup.agents.get(name)
        if replaced is not None:
            return replaced(self.lab, self._clients[name])
        kind, description = _KINDS[name]
        return kind(name, description, self.lab, self._clients[name])


def _under_way(base_id: str, plan: Hypotheses) -> tuple[UnderWay, ...]:
    chosen = [plan.experiments[one.experiment] for one in plan.chosen]
    return tuple(UnderWay(base_id=base_id, description=one.description, rubric=one.rubric) for one in chosen)


_KINDS: dict[str, tuple[type[ScientistAgent], str]] = {
    SELECTOR: (SelectorAgent, "Picks the kernel to build on and a contrasting one."),
    RESEARCHER: (ResearcherAgent, "Reads literature and designs experiments."),
    CODER: (CoderAgent, "Writes the kernel of an experiment."),
    BENCHMARKER: (BenchmarkerAgent, "Has it judged and writes the finding."),
}
