"""The order of speaking, as a pure function of the messages so far, and the AutoGen team that obeys it.

    selector -> researcher -> coder -> benchmarker -> coder ... until every chosen experiment has its finding

A failed candidate goes back to the Coder while tries are left; where the Coder has no repair, the Benchmarker
writes the finding on it. A step that failed for good is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autogen_agentchat.base import TerminatedException, TerminationCondition
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, StopMessage, StructuredMessage
from autogen_agentchat.teams import SelectorGroupChat
from pydantic import BaseModel

from .messages import (
    CandidateProposal,
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

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient

    from .agent import ScientistAgent

__all__ = [
    "BENCHMARKER",
    "CODER",
    "MESSAGE_TYPES",
    "RESEARCHER",
    "SELECTOR",
    "Progress",
    "Thread",
    "as_message",
    "content_of",
    "follow",
    "make_team",
    "next_speaker",
]

SELECTOR, RESEARCHER, CODER, BENCHMARKER = "selector", "researcher", "coder", "benchmarker"

Thread = Sequence[BaseAgentEvent | BaseChatMessage]

# AutoGen knows a structured message by its content's class, so each has its own.
_MESSAGES: dict[type[BaseModel], type[StructuredMessage[Any]]] = {
    GenerationTask: StructuredMessage[GenerationTask],
    Selection: StructuredMessage[Selection],
    Hypotheses: StructuredMessage[Hypotheses],
    CandidateProposal: StructuredMessage[CandidateProposal],
    EvaluationFailure: StructuredMessage[EvaluationFailure],
    Finding: StructuredMessage[Finding],
    StepFailed: StructuredMessage[StepFailed],
    Stopped: StructuredMessage[Stopped],
}

MESSAGE_TYPES: tuple[type[BaseChatMessage], ...] = tuple(_MESSAGES.values())

# What a wrong result is worth is budgeted apart: it rarely takes one look at a message to mend.
_RESULT_CLASS = frozenset({"wrong_result", "implausible"})


@dataclass(slots=True)
class Progress:
    """Where a conversation stands. `speaker` is who is next, ``None`` when it is over.

    `slot` counts the chosen experiments from 0; `proposals` and `failures` are the current slot's. With
    `given_up` the Coder has no repair for the last of them: the Benchmarker writes down what was learnt.
    """

    speaker: str | None = SELECTOR
    task: GenerationTask | None = None
    selection: Selection | None = None
    hypotheses: Hypotheses | None = None
    slot: int = 0
    proposals: list[CandidateProposal] = field(default_factory=list[CandidateProposal])
    failures: list[EvaluationFailure] = field(default_factory=list[EvaluationFailure])
    given_up: bool = False

    @property
    def experiment(self) -> Experiment:
        assert self.hypotheses is not None
        return self.hypotheses.experiments[self.hypotheses.chosen[self.slot].experiment]

    def tries_left(self, verdict: str) -> int:
        """How many more attempts this slot gets after another failure of `verdict`."""
        assert self.task is not None
        if self.given_up:
            return 0
        same = [one for one in self.failures if (one.verdict in _RESULT_CLASS) == (verdict in _RESULT_CLASS)]
        budget = self.task.result_repairs if verdict in _RESULT_CLASS else self.task.build_repairs
        return max(0, budget - len(same))

    def next_slot(self) -> None:
        self.slot += 1
        self.proposals.clear()
        self.failures.clear()
        self.given_up = False
        done = self.hypotheses is None or self.slot >= len(self.hypotheses.chosen)
        self.speaker = None if done else CODER


def as_message(content: Content, source: str) -> StructuredMessage[Any]:
    """The AutoGen message that carries `content`."""
    return _MESSAGES[type(content)](content=content, source=source)


def follow(messages: Thread) -> Progress:
    """Where the conversation stands after `messages`; depends on nothing else."""
    progress = Progress()
    for message in messages:
        _advance(progress, content_of(message))
    return progress


def content_of(message: object) -> object:
    """The typed content of a message; ``None`` when it has none."""
    content: object = getattr(message, "content", None) if isinstance(message, MESSAGE_TYPES) else None
    return content


def _advance(progress: Progress, content: object) -> None:
    match content:
        case GenerationTask():
            progress.task = content
        case Selection():
            progress.selection = content
            progress.speaker = RESEARCHER
        case Hypotheses():
            progress.hypotheses = content
            progress.speaker = CODER if content.chosen else None
        case CandidateProposal():
            progress.proposals.append(content)
            progress.speaker = BENCHMARKER
        case EvaluationFailure():
            progress.failures.append(content)
            progress.speaker = CODER
        case Finding():
            progress.next_slot()
        case StepFailed(agent="coder") if progress.failures:
            progress.given_up = True
            progress.speaker = BENCHMARKER
        case StepFailed(agent="coder" | "benchmarker"):
            progress.next_slot()
        case StepFailed() | Stopped():
            progress.speaker = None
        case _:
            pass


def next_speaker(messages: Thread) -> str | None:
    """AutoGen's `selector_func`; the end is announced by the termination condition before it is asked."""
    return follow(messages).speaker


class _ConversationOver(TerminationCondition):
    """Ends the chat when `follow` says that nobody is next."""

    def __init__(self) -> None:
        self._thread: list[BaseAgentEvent | BaseChatMessage] = []
        self._over = False

    @property
    def terminated(self) -> bool:
        return self._over

    async def __call__(self, messages: Thread) -> StopMessage | None:
        if self._over:
            raise TerminatedException("The conversation is over.")
        self._thread.extend(messages)
        self._over = next_speaker(self._thread) is None
        return StopMessage(content="every step is done", source="manager") if self._over else None

    async def reset(self) -> None:
        self._thread.clear()
        self._over = False


def make_team(agents: Sequence[ScientistAgent], manager: ChatCompletionClient) -> SelectorGroupChat:
    """A fresh team for one generation. `manager` is asked nothing: the order is not a model's choice."""
    return SelectorGroupChat(
        list(agents),
        model_client=manager,
        termination_condition=_ConversationOver(),
        selector_func=next_speaker,
        allow_repeated_speaker=True,
        custom_message_types=list(MESSAGE_TYPES),
    )
