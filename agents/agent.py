"""What the four agents have in common: being asked, asking a model, mending its bad answers."""

from __future__ import annotations

import asyncio
import json
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import BaseTool
from pydantic import BaseModel

from . import events as ev
from .chat import MESSAGE_TYPES, Progress, as_message, follow
from .interrupts import BadReply, GaveUp, ModelUnavailable, PromptTooLong, ShortReply, StopSession
from .lab import Lab
from .messages import Content, StepFailed, Stopped
from .models.recording import RecordingClient
from .packing import fit_messages, pack, room_for
from .replies import clean, quote_json
from .requests import Request, render_request

__all__ = ["ScientistAgent"]

T = TypeVar("T")

QUOTED_REPLY = 6_000
"""Characters of a bad reply that are shown to the model again."""


_SHRINKS = 3
_SHRINK = 0.6


@dataclass(frozen=True, slots=True)
class _Means:
    """What a model may use for its answer, and the form that it has."""

    tools: Sequence[BaseTool[Any, Any]]
    rounds: int
    enough: Callable[[], bool]
    form: type[BaseModel] | None


class ScientistAgent(BaseChatAgent):
    """One speaker. A subclass says what it asks its model and how the answer is read (`speak`).

    Whatever goes wrong becomes a message, so that AutoGen never sees an exception: a step that cannot be
    done is a `StepFailed`, the end of the session a `Stopped` with the reason kept in the lab.
    """

    def __init__(self, name: str, description: str, lab: Lab, model: RecordingClient) -> None:
        super().__init__(name, description)
        self._lab = lab
        self._model = model
        self._prompt = lab.prompts[name]
        self._thread: list[BaseAgentEvent | BaseChatMessage] = []

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return MESSAGE_TYPES

    @abstractmethod
    async def speak(self, progress: Progress) -> Content:
        """Do this agent's step and return what it says."""

    async def on_messages(
        self,
        messages: Sequence[BaseChatMessage],
        cancellation_token: CancellationToken,  # noqa: ARG002 - what stops us is the lab's signal
    ) -> Response:
        self._thread.extend(messages)
        progress = follow(self._thread)
        try:
            content = await self._speak_safely(progress)
            # Answers recalled from the record are those of the turn that broke off, and of no other.
            self._model.recall(())
            self._lab.recorder.emit(ev.MessageSent, agent=self.name, content=content, text=content.text)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # Whatever it is, raised by an observer or a policy, say: AutoGen's runtime would wait for ever.
            content = self._stopped(error)
        message = as_message(content, self.name)
        self._thread.append(message)
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:  # noqa: ARG002 - AutoGen's
        self._thread.clear()

    async def _speak_safely(self, progress: Progress) -> Content:
        slot = progress.slot if progress.hypotheses is not None else None
        attempt = len(progress.proposals) + (self.name == "coder") if slot is not None else None
        try:
            self._lab.recorder.emit(ev.SpeakerSelected, agent=self.name, slot=slot, attempt=attempt)
            self._lab.stop.check()
            self._lab.budget.check()
            return await self.speak(progress)
        except (BadReply, ModelUnavailable) as fault:
            reason = clean(str(fault), 1000)
            self._lab.note(self.name, reason)
            return StepFailed(agent=self.name, slot=slot, reason=reason)
        except GaveUp as end:
            return StepFailed(agent=self.name, slot=slot, reason=clean(str(end), 1000), gave_up=True)
        except StopSession as stop:
            self._lab.failure = stop
            return Stopped(agent=self.name, reason=str(stop))
        except Exception as error:
            return self._stopped(error)

    def _stopped(self, error: BaseException) -> Stopped:
        # Kept for the session to raise with its own type: AutoGen would turn it into a RuntimeError.
        self._lab.failure = self._lab.failure or error
        return Stopped(agent=self.name, reason=clean(f"{type(error).__name__}: {error}", 1000))

    async def ask(
        self,
        request: Request,
        read: Callable[[str], T],
        *,
        tools: Sequence[BaseTool[Any, Any]] = (),
        tool_rounds: int = 0,
        enough: Callable[[], bool] = lambda: False,
        form: type[BaseModel] | None = None,
    ) -> T | None:
        """Ask the model and read its answer, mending a bad one in a bounded number of turns.

        Tools may be called in `tool_rounds` rounds; ``None`` when `enough` held after one of them. `form` is
        what the answer is where it is one JSON object. Raises `BadReply` when the last try was no better.
        """
        for _ in range(_SHRINKS):
            try:
                return await self._ask(request, read, _Means(tools, tool_rounds, enough, form))
            except PromptTooLong as fault:
                smaller = int(self._model.window * _SHRINK)
                self._model.window = min(smaller, fault.window or smaller)
                self._lab.note(self.name, f"{fault} Asking again within {self._model.window} tokens.")
        return await self._ask(request, read, _Means(tools, tool_rounds, enough, form))

    async def _ask(self, request: Request, read: Callable[[str], T], means: _Means) -> T | None:
        messages: list[LLMMessage] = [
            SystemMessage(content=self._prompt.system),
            UserMessage(content=self._wording(request), source="manager"),
        ]
        repairs = self._lab.config.repairs.reply
        purpose: str = request.request
        for attempt in range(repairs + 1):
            text, cut_off = "", False
            try:
                answer = await self._complete(messages, means, purpose)
                if answer is None:
                    return None
                text, cut_off = answer
                return read(text)
            except BadReply as bad:
                fault = _cut_off(bad) if cut_off else bad
                self._lab.answers.unusable += not isinstance(bad, ShortReply)
                if attempt == repairs:
                    raise fault from None
                if text.strip():
                    messages.append(AssistantMessage(content=clean(text, QUOTED_REPLY), source=self.name))
                messages.append(UserMessage(content=_complaint(fault), source="manager"))
                purpose = f"{request.request}, repair {attempt + 1}"
        raise AssertionError("the loop returns or raises")

    def _wording(self, request: Request) -> str:
        packed, cut = pack(request, self._room())
        self._tell_cut(cut)
        note = f" Left out for want of room: {', '.join(cut)}." if cut else ""
        return self._prompt.wording(render_request(packed), note)

    def _room(self) -> int:
        return room_for(self._model.window, self._model.answer_tokens, self._prompt.system)

    def _tell_cut(self, cut: tuple[str, ...]) -> None:
        if cut:
            self._lab.recorder.emit(ev.ContextCut, agent=self.name, window=self._model.window, cut=cut)

    async def _complete(
        self,
        messages: list[LLMMessage],
        means: _Means,
        purpose: str,
    ) -> tuple[str, bool] | None:
        """The answer's text and whether it was cut off; ``None`` when none is needed any more."""
        for turn in range(means.rounds + 1):
            offered = means.tools if turn < means.rounds else ()
            sent, cut = fit_messages(messages, self._room())
            self._tell_cut(cut)
            result = await self._model.ask(sent, tools=offered, form=means.form, purpose=purpose)
            if isinstance(result.content, str):
                return result.content, result.finish_reason == "length"
            messages.append(AssistantMessage(content=result.content, source=self.name))
            results = [await self._call(call, means.tools) for call in result.content]
            messages.append(FunctionExecutionResultMessage(content=results))
            if means.enough():
                return None
        raise BadReply("The model went on calling tools and gave no answer.")

    async def _call(self, call: FunctionCall, tools: Sequence[BaseTool[Any, Any]]) -> FunctionExecutionResult:
        """Run one tool call of the model's; a wrong name or wrong arguments are an answer, not a fault."""
        tool = next((one for one in tools if one.name == call.name), None)
        try:
            arguments = json.loads(call.arguments or "{}")
            if tool is None:
                raise ValueError(
                    f"there is no tool {quote_json(call.name[:100])}; "
                    f"there are: {', '.join(t.name for t in tools)}"
                )
            if not isinstance(arguments, dict):
                raise ValueError("the arguments are not a JSON object")
            named = cast("dict[str, Any]", arguments)
            return await self.use(tool, named, call_id=call.id, called_by="model")
        except (ValueError, RecursionError) as error:
            text = clean(f"This call failed: {error}", 1000)
            self._lab.recorder.emit(
                ev.ToolCall, agent=self.name, tool=clean(call.name, 100),
                arguments={"text": clean(call.arguments, 500)}, result=text, is_error=True, seconds=0.0,
            )  # fmt: skip
            return FunctionExecutionResult(content=text, name=call.name, call_id=call.id, is_error=True)

    async def use(
        self,
        tool: BaseTool[Any, Any],
        arguments: dict[str, Any],
        *,
        call_id: str = "",
        called_by: Literal["model", "agent"] = "agent",
    ) -> FunctionExecutionResult:
        """Run a tool and record the call. Raises `ValueError` on arguments that do not fit."""
        began = time.perf_counter()
        value = await tool.run_json(arguments, CancellationToken(), call_id=call_id)
        text = tool.return_value_as_string(value)
        self._lab.recorder.emit(
            ev.ToolCall, agent=self.name, tool=tool.name, arguments=arguments, result=text,
            called_by=called_by, seconds=time.perf_counter() - began,
        )  # fmt: skip
        return FunctionExecutionResult(content=text, name=tool.name, call_id=call_id, is_error=False)


def _cut_off(fault: BadReply) -> BadReply:
    return BadReply(f"The reply was cut off at the longest length allowed; be briefer. {fault}")


def _complaint(fault: BadReply) -> str:
    verdict = (
        "That answer is not complete." if isinstance(fault, ShortReply) else "That answer cannot be used."
    )
    return f"{verdict} {clean(str(fault), 2000)} Give the whole answer again."
