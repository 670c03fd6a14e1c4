"""The one way to a model: every attempt is recorded and charged, transient failures are retried."""

# ruff: noqa: ARG002 - arguments of AutoGen's interface
from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, final

from autogen_core import CancellationToken
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from ..config import ModelsConfig
from ..interrupts import ModelGone, ModelUnavailable, PromptTooLong, RecordingOver, StopSession
from ..lab import Lab
from ..past import Answer
from .ledger import Attempt, Ledger, estimate_tokens
from .protocol import MAX_ANSWER
from .registry import CallFault, CallKey, Feature, Keyed, OpenedModel, hider, unavailable

__all__ = ["RecordingClient"]

DEFAULT_CONTEXT = 64_000
"""Tokens that a model is taken to read where nobody says."""

_LONGEST_BACKOFF_S = 60.0
# Of one answer: more tool calls are not looked at, longer arguments are cut and so no tool's.
_MOST_CALLS = 16
_LONGEST_NAME = 100
_LONGEST_ARGUMENTS = 20_000
# So many calls in a row without an answer, and the endpoint is taken to be gone.
_GIVE_UP_AFTER = 2
_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0}
_FEATURE_NAMES: Mapping[Feature, str] = {
    "schema": "schemas for answers",
    "tools": "tools",
    "usage": "token counts on streams",
}


class _StreamEnded(Exception):  # noqa: N818 - named by what happened
    """A streamed answer had no end."""


@final
class RecordingClient(ChatCompletionClient):
    """An AutoGen client round another: records into events, charges the budget, retries, can be stopped.

    `ask` is what agents use; `create` is the same without a purpose, for AutoGen's own use. `window` is how
    many tokens the model reads, as far as is known.
    """

    def __init__(self, opened: OpenedModel, agent: str, lab: Lab) -> None:
        self._opened = opened
        self._inner = opened.client
        self._agent = agent
        self._lab = lab
        self._settings: ModelsConfig = lab.config.models.for_agent(agent)
        self._ledger = Ledger(opened, agent, lab)
        self._hide = hider(opened.secrets)
        self._silent = 0
        self._recalled: deque[Answer] = deque()
        self._turn = CallKey(0, 0, agent, 0)
        self.window = self._settings.context_tokens or opened.context_tokens or DEFAULT_CONTEXT

    @property
    def name(self) -> str:
        return self._opened.name

    @property
    def answer_tokens(self) -> int:
        """How much of the window an answer may take."""
        return self._settings.max_output_tokens or min(16_000, self.window // 4)

    def recall(self, answers: Sequence[Answer], *, turn: int = 0) -> None:
        """Give these answers, recorded and paid for before, to the calls to come, as long as they fit.

        `turn` counts the answers of this generation that came before them.
        """
        self._recalled = deque(answers)
        if turn:
            self._turn = replace(self._key(), turn=turn)

    async def ask(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        form: type[BaseModel] | None = None,
        purpose: str,
    ) -> CreateResult:
        """One answer, in the form of `form` where the endpoint can be told it.

        Raises `ModelUnavailable` when there is none, `PromptTooLong` when the prompt was too long for one,
        and `ModelGone` when there will be none: a refused key, a wrong name, a dead endpoint.
        """
        recalled = self._from_record(purpose)
        if recalled is not None:
            return recalled
        tries, number = 0, 0
        while True:
            number += 1
            self._lab.stop.check()
            self._lab.budget.check()
            attempt = Attempt(messages, purpose, number, self._features(tools, form))
            try:
                result = await self._lab.stop.unless_stopped(self._one_call(attempt, tools, form))
            except StopSession:
                raise
            except Exception as error:
                # Any exception of any client's is the call's failure; what it means is the client's to say.
                fault = self._explain(error)
            else:
                return self._answered(attempt, result)
            if not self._does_without(attempt, fault):
                tries += 1
                await self._failed(attempt, fault, tries)

    def _features(
        self, tools: Sequence[Tool | ToolSchema], form: type[BaseModel] | None
    ) -> frozenset[Feature]:
        info = self._inner.model_info
        sent: set[Feature] = {"tools"} if tools and info["function_calling"] else set()
        if form is not None and info["structured_output"]:
            sent.add("schema")
        if self._settings.stream:
            sent.add("usage")
        return frozenset(sent)

    def _from_record(self, purpose: str) -> CreateResult | None:
        if not self._recalled:
            return None
        answer = self._recalled.popleft()
        try:
            if answer.purpose != purpose:
                raise ValueError("it answers another question")
            result = CreateResult.model_validate({"usage": _NO_USAGE, **answer.response})
        except ValueError:
            # What came after it answers what will not be asked either.
            self._recalled.clear()
            return None
        self._count(result)
        return result

    async def _one_call(
        self, attempt: Attempt, tools: Sequence[Tool | ToolSchema], form: type[BaseModel] | None
    ) -> CreateResult:
        messages = attempt.messages
        offered = tools if "tools" in attempt.sent else ()
        wanted = form if "schema" in attempt.sent else None
        async with asyncio.timeout(self._settings.timeout_s):
            if isinstance(self._inner, Keyed):
                result, attempt.remark = await self._inner.answer_to(self._key(), messages)
                return result
            if not self._settings.stream:
                return await self._inner.create(messages, tools=offered, json_output=wanted)
            async for part in self._inner.create_stream(messages, tools=offered, json_output=wanted):
                if isinstance(part, CreateResult):
                    return part
                attempt.characters += len(part)
        raise _StreamEnded

    def _key(self) -> CallKey:
        """Which call this is; counted anew in every generation of every lane."""
        recorder, last = self._lab.recorder, self._turn
        if (last.lane, last.generation) != (recorder.lane, recorder.generation):
            self._turn = CallKey(recorder.lane, recorder.generation, self._agent, 0)
        return self._turn

    def _answered(self, attempt: Attempt, result: CreateResult) -> CreateResult:
        self._silent = 0
        result = self._tamed(result)
        self._count(result)
        self._ledger.answer(attempt, result)
        if attempt.remark:
            if not self._lab.answers.astray:
                self._lab.note(self._agent, attempt.remark)
            self._lab.answers.astray += 1
        return result

    def _count(self, result: CreateResult) -> None:
        self._turn = replace(self._key(), turn=self._key().turn + 1)
        content = result.content
        if content and (not isinstance(content, str) or content.strip()):
            self._lab.answers.given += 1
        else:
            self._lab.answers.empty += 1

    def _tamed(self, result: CreateResult) -> CreateResult:
        """A bounded answer that can be written to a file, without a key that an endpoint echoes."""
        content, thought = result.content, result.thought

        def hide(text: str) -> str:
            return self._hide(text.encode("utf-8", "replace").decode())

        calls_or_text = (
            hide(content[:MAX_ANSWER])
            if isinstance(content, str)
            else [
                replace(
                    one,
                    name=hide(one.name[:_LONGEST_NAME]),
                    arguments=hide(one.arguments[:_LONGEST_ARGUMENTS]),
                )
                for one in content[:_MOST_CALLS]
            ]
        )
        short = None if thought is None else hide(thought[:MAX_ANSWER])
        return result.model_copy(update={"content": calls_or_text, "thought": short})

    def _does_without(self, attempt: Attempt, fault: CallFault) -> bool:
        """Whether the call is worth another try without something that the endpoint does not have."""
        lacks, drop = fault.lacks, self._opened.drop
        if lacks is None or drop is None or fault.fatal or lacks not in attempt.sent:
            return False
        self._ledger.failure(attempt, fault)
        drop(lacks)
        self._lab.note(self._agent, f"{fault.sentence}; going on without {_FEATURE_NAMES[lacks]}")
        return True

    async def _failed(self, attempt: Attempt, fault: CallFault, tries: int) -> None:
        """Record a failed try, then wait for the next, or raise what there is no next for."""
        answers = self._lab.answers
        answers.failed += 1
        answers.fault = fault.sentence
        pause = self._pause(tries, fault)
        again = fault.retry and tries < self._settings.tries and not fault.fatal
        too_patient = again and fault.wait_s is not None and fault.wait_s > self._settings.longest_wait_s
        waiting = f"; waiting {pause:.1f} s" if again and not too_patient else ""
        self._ledger.failure(attempt, replace(fault, sentence=fault.sentence + waiting))
        if fault.fatal:
            raise ModelGone(UsageError(fault.sentence)) from None
        if fault.over:
            raise RecordingOver(fault.sentence) from None
        if fault.too_long:
            raise PromptTooLong(str(unavailable(self.name, fault, tries)), fault.window) from None
        if too_patient:
            raise ModelGone(
                UnusableEnvironment(
                    f"{fault.sentence}; that is {fault.wait_s:.0f} s, above "
                    "models.longest_wait_s; resume the run then."
                )
            ) from None
        if not again:
            raise self._give_up(fault, tries) from None
        await self._lab.stop.unless_stopped(asyncio.sleep(min(pause, self._lab.budget.seconds_left)))

    def _explain(self, error: Exception) -> CallFault:
        if isinstance(error, _StreamEnded):
            return CallFault("the stream ended before the answer did", retry=True, billed=True)
        if isinstance(error, TimeoutError):
            return CallFault(
                f"no answer within {self._settings.timeout_s:g} s (models.timeout_s)", retry=True, billed=True
            )
        fault = self._opened.explain(error)
        sentence = self._hide(fault.sentence)
        if fault.lacks == "schema" and self._settings.structured_output == "schema":
            advice = "models.structured_output = 'auto' does without schemas."
            return replace(fault, sentence=f"{sentence}; {advice}", fatal=True)
        return replace(fault, sentence=sentence)

    def _give_up(self, fault: CallFault, tries: int) -> Exception:
        self._silent += 1
        gone: ModelUnavailable = unavailable(self.name, fault, tries)
        if fault.unreachable or (fault.retry and self._silent >= _GIVE_UP_AFTER):
            sentence = f"{str(gone).rstrip('.')}; check the endpoint, then run again."
            return ModelGone(UnusableEnvironment(sentence))
        return gone

    def _pause(self, tries: int, fault: CallFault) -> float:
        if fault.wait_s is not None:
            # Not all lanes at the same moment.
            return fault.wait_s * random.uniform(1.0, 1.1)
        backoff = self._settings.retry_wait_s * 2.0 ** min(tries - 1, 30)
        return min(backoff, _LONGEST_BACKOFF_S) * random.uniform(0.5, 1.0)

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        return await self.ask(messages, tools=tools, purpose="manager")

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        yield await self.ask(messages, tools=tools, purpose="manager")

    async def close(self) -> None:
        await self._inner.close()

    def actual_usage(self) -> RequestUsage:
        return self._inner.actual_usage()

    def total_usage(self) -> RequestUsage:
        return self._inner.total_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        return estimate_tokens(messages)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        return max(0, self.window - estimate_tokens(messages))

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return self._inner.model_info
