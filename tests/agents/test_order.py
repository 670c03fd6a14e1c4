"""The order of speaking is a pure function of the messages."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.messages import TextMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.agents.chat import as_message, follow, make_team, next_speaker
from kernel_scientist.agents.messages import (
    CandidateProposal,
    Choice,
    Content,
    EvaluationFailure,
    Experiment,
    Finding,
    GenerationTask,
    Hypotheses,
    Selection,
    StepFailed,
    Stopped,
)
from kernel_scientist.agents.models.scripted import ScriptedModel

TASK = GenerationTask(generation=1, generations=1, experiments=3, build_repairs=2, result_repairs=1)
VERDICTS = ("compile_error", "crashed", "invalid_plan", "wrong_result", "implausible", "accepted")


def _plan(count: int) -> Hypotheses:
    one = Experiment(description="d", rubric=("r",), uplift_min=0, uplift_max=1, innovation=1)
    choices = tuple(Choice(experiment=n, criterion="c") for n in range(count))
    return Hypotheses(experiments=(one,) * count, chosen=choices, nothing_to_try=None if count else "done")


def _reply(speaker: str, thread: list[Any], verdicts: list[str], breaks: set[int]) -> Content:
    """What a speaker would say; turns in `breaks` fail, verdicts come in order."""
    progress = follow(thread)
    turn = len(thread)
    if turn in breaks:
        return StepFailed(agent=speaker, slot=progress.slot, reason="no")
    match speaker:
        case "selector":
            return Selection(base_id="0000", reasons="r")
        case "researcher":
            return _plan(3)
        case "coder":
            return CandidateProposal(
                candidate_id=f"{turn:04d}", slot=progress.slot, attempt=len(progress.proposals) + 1, report=""
            )
        case _:
            verdict = verdicts.pop() if verdicts else "accepted"
            left = 0 if verdict == "accepted" else progress.tries_left(verdict)
            proposal = progress.proposals[-1]
            if left:
                return EvaluationFailure(
                    candidate_id=proposal.candidate_id,
                    slot=progress.slot,
                    attempt=proposal.attempt,
                    verdict=verdict,
                    evidence="e",
                    tries_left=left,
                )
            return Finding(
                candidate_id=proposal.candidate_id,
                slot=progress.slot,
                verdict=verdict,
                tried="",
                happened="",
                predicted_min=0,
                predicted_max=1,
            )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(VERDICTS), max_size=15), st.sets(st.integers(1, 25), max_size=3))
def test_every_conversation_ends_and_each_speaker_has_what_it_needs(
    verdicts: list[str], breaks: set[int]
) -> None:
    thread: list[Any] = [as_message(TASK, "manager")]
    spoken: list[str] = []
    while (speaker := next_speaker(thread)) is not None:
        progress = follow(thread)
        assert speaker != "researcher" or progress.selection is not None
        assert speaker != "coder" or progress.experiment is not None
        assert speaker != "benchmarker" or progress.proposals
        assert len(progress.proposals) <= 1 + TASK.build_repairs + TASK.result_repairs
        thread.append(as_message(_reply(speaker, thread, verdicts, breaks), speaker))
        spoken.append(speaker)
        assert next_speaker(thread) == next_speaker(list(thread)), "pure"
    assert spoken[0] == "selector"
    assert len(spoken) <= 2 + 3 * 2 * (1 + TASK.build_repairs + TASK.result_repairs)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(VERDICTS), max_size=15), st.integers(0, 30))
def test_messages_without_content_change_nothing_and_a_prefix_resumes(verdicts: list[str], cut: int) -> None:
    """A resumed conversation picks up with the speaker that an uninterrupted one would have had next."""
    thread: list[Any] = [as_message(TASK, "manager")]
    order: list[str] = []
    while (speaker := next_speaker(thread)) is not None:
        order.append(speaker)
        thread.append(as_message(_reply(speaker, thread, verdicts, set()), speaker))
    prefix = thread[: 1 + cut % len(thread)]
    noise = TextMessage(content="a remark", source="user")
    expected = order[len(prefix) - 1] if len(prefix) <= len(order) else None
    assert next_speaker([*prefix, noise]) == expected


def test_compile_failures_and_wrong_results_have_budgets_of_their_own() -> None:
    thread: list[Any] = [
        as_message(TASK, "m"),
        as_message(Selection(base_id="0", reasons=""), "s"),
        as_message(_plan(1), "r"),
    ]
    for attempt, verdict in enumerate(("wrong_result", "compile_error"), start=1):
        thread.append(
            as_message(CandidateProposal(candidate_id="1", slot=0, attempt=attempt, report=""), "c")
        )
        thread.append(
            as_message(
                EvaluationFailure(
                    candidate_id="1", slot=0, attempt=attempt, verdict=verdict, evidence="", tries_left=1
                ),
                "b",
            )
        )
    progress = follow(thread)
    assert (progress.tries_left("crashed"), progress.tries_left("implausible")) == (1, 0)


def test_a_stop_ends_the_conversation_wherever_it_comes() -> None:
    thread = [as_message(TASK, "m"), as_message(Stopped(agent="coder", reason="limit"), "coder")]
    assert next_speaker(thread) is None


def test_the_team_asks_no_model_for_the_order() -> None:
    """A real AutoGen team of stand-ins that speak by the same function."""
    from autogen_agentchat.agents import BaseChatAgent
    from autogen_agentchat.base import Response
    from autogen_core import CancellationToken

    from kernel_scientist.agents.chat import MESSAGE_TYPES

    class StandIn(BaseChatAgent):
        def __init__(self, name: str) -> None:
            super().__init__(name, name)
            self.thread: list[Any] = []

        produced_message_types = MESSAGE_TYPES  # type: ignore[assignment]

        async def on_messages(self, messages: Any, cancellation_token: CancellationToken) -> Response:
            self.thread.extend(messages)
            message = as_message(_reply(self.name, self.thread, [], set()), self.name)
            self.thread.append(message)
            return Response(chat_message=message)

        async def on_reset(self, cancellation_token: CancellationToken) -> None:
            self.thread.clear()

    model = ScriptedModel([AssertionError("the manager asked a model")])
    agents: Any = [StandIn(name) for name in ("selector", "researcher", "coder", "benchmarker")]

    async def talk() -> list[str]:
        result = await make_team(agents, model).run(task=as_message(TASK, "manager"))
        return [message.source for message in result.messages]  # type: ignore[union-attr]

    sources = asyncio.run(talk())
    assert sources == ["manager", "selector", "researcher", *["coder", "benchmarker"] * 3]
    assert model.calls == 0
