"""The one way to a model: every attempt is recorded and charged, transient failures are retried."""

# ruff: noqa: ARG002 - arguments of AutoGen's interface
from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
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

from .. import events as ev
from ..budget import cost_of
from ..config import ModelsConfig, Price
from ..interrupts import ModelUnavailable, StopSession
from ..lab import Lab
from ..replies import clean
from .registry import CallFault, OpenedModel, unavailable

__all__ = ["RecordingClient", "estimate_tokens"]

_CHARACTERS_PER_TOKEN = 4
_LONGEST_WAIT_S = 120.0
# So many calls in a row without an answer, and the endpoint is taken to be gone.
_GIVE_UP_AFTER = 2
_RESPONSE_KEPT = 400_000


def estimate_tokens(messages: Sequence[LLMMessage]) -> int:
    """A rough count, for where the endpoint reports none."""
    return sum(len(str(message.content)) for message in messages) // _CHARACTERS_PER_TOKEN + 1


class _StreamEnded(Exception):  # noqa: N818 - named by what happened
    """A streamed answer had no end."""


@final
class RecordingClient(ChatCompletionClient):
    """An AutoGen client round another: records into events, charges the budget, retries, can be stopped.

    `ask` is what agents use; `create` is the same without a purpose, for AutoGen's own use.
    """

    def __init__(self, opened: OpenedModel, agent: str, lab: Lab) -> None:
        self._opened = opened
        self._inner = opened.client
        self._agent = agent
        self._lab = lab
        self._settings: ModelsConfig = lab.config.models
        self._price: Price | None = Price(input=0, output=0) if opened.free else opened.price
        self._last: list[dict[str, Any]] = []
        self._silent = 0

    @property
    def name(self) -> str:
        return self._opened.name

    async def ask(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = (), purpose: str
    ) -> CreateResult:
        """One answer. Raises `ModelUnavailable` when there is none, and when there will be none `UsageError`
        (a key, a name) or `UnusableEnvironment` (the endpoint is gone)."""
        tries = self._settings.tries
        for attempt in range(1, tries + 1):
            self._lab.stop.check()
            self._lab.budget.check()
            began = time.perf_counter()
            try:
                result = await self._lab.stop.unless_stopped(self._one_call(messages, tools))
            except StopSession:
                raise
            except Exception as error:
                # Any exception of any client's is the call's failure; what it means is the client's to say.
                fault = self._explain(error)
                self._count_failure(fault)
                self._record_failure(messages, purpose, attempt, time.perf_counter() - began, fault)
                if fault.fatal:
                    raise UsageError(fault.sentence) from None
                if not fault.retry or attempt == tries:
                    raise self._give_up(fault, attempt) from None
                await self._lab.stop.unless_stopped(asyncio.sleep(self._pause(attempt, fault)))
            else:
                self._silent = 0
                self._count_answer(result)
                self._record_answer(messages, purpose, attempt, time.perf_counter() - began, result)
                return result
        raise AssertionError("the loop returns or raises")

    async def _one_call(
        self, messages: Sequence[LLMMessage], tools: Sequence[Tool | ToolSchema]
    ) -> CreateResult:
        offered = tools if self.model_info["function_calling"] else ()
        async with asyncio.timeout(self._settings.timeout_s):
            if not self._settings.stream:
                return await self._inner.create(messages, tools=offered)
            async for part in self._inner.create_stream(messages, tools=offered):
                if isinstance(part, CreateResult):
                    return part
        raise _StreamEnded

    def _count_failure(self, fault: CallFault) -> None:
        answers = self._lab.answers
        answers.failed += 1
        answers.fault = fault.sentence

    def _count_answer(self, result: CreateResult) -> None:
        content = result.content
        if content and (not isinstance(content, str) or content.strip()):
            self._lab.answers.given += 1
        else:
            self._lab.answers.empty += 1

    def _explain(self, error: Exception) -> CallFault:
        if isinstance(error, _StreamEnded):
            return CallFault("the stream ended before the answer did", retry=True)
        if isinstance(error, TimeoutError):
            return CallFault(
                f"no answer within {self._settings.timeout_s:g} s (models.timeout_s)", retry=True
            )
        return self._opened.explain(error)

    def _give_up(self, fault: CallFault, tries: int) -> Exception:
        self._silent += 1
        gone: ModelUnavailable = unavailable(self.name, fault, tries)
        if fault.retry and self._silent >= _GIVE_UP_AFTER:
            return UnusableEnvironment(f"{str(gone).rstrip('.')}; check the endpoint, then run again.")
        return gone

    def _pause(self, attempt: int, fault: CallFault) -> float:
        if fault.wait_s is not None:
            return min(fault.wait_s, _LONGEST_WAIT_S)
        backoff = self._settings.retry_wait_s * 2 ** (attempt - 1)
        jittered: float = min(backoff, _LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
        return jittered

    def _record_answer(
        self, messages: Sequence[LLMMessage], purpose: str, attempt: int, seconds: float, result: CreateResult
    ) -> None:
        usage = ev.Usage(
            prompt_tokens=result.usage.prompt_tokens, completion_tokens=result.usage.completion_tokens
        )
        if not usage.total_tokens:
            answer = len(str(result.content)) // _CHARACTERS_PER_TOKEN + 1
            usage = ev.Usage(
                prompt_tokens=estimate_tokens(messages), completion_tokens=answer, estimated=True
            )
        response = result.model_dump(mode="json", exclude={"logprobs", "usage"}, exclude_none=True)
        if isinstance(result.content, str):
            response["content"] = clean(result.content, _RESPONSE_KEPT)
        self._emit(messages, purpose, attempt, seconds, usage, response=response)

    def _record_failure(
        self, messages: Sequence[LLMMessage], purpose: str, attempt: int, seconds: float, fault: CallFault
    ) -> None:
        # What a failed call cost is not known; a service bills nothing for most, so only the call counts.
        usage = ev.Usage(prompt_tokens=0, completion_tokens=0, estimated=True)
        self._emit(messages, purpose, attempt, seconds, usage, error=clean(fault.sentence, 2_000))

    def _emit(
        self, messages: Sequence[LLMMessage], purpose: str, attempt: int, seconds: float, usage: ev.Usage,
        *, response: dict[str, Any] | None = None, error: str | None = None,
    ) -> None:  # fmt: skip
        cost = cost_of(usage, self._price)
        self._lab.budget.charge_call(usage, cost)
        request = [message.model_dump(mode="json", exclude_none=True) for message in messages]
        prefix = _common_prefix(self._last, request)
        self._last = request
        self._lab.recorder.emit(
            ev.ModelCall,
            agent=self._agent,
            purpose=purpose,
            model=self.name,
            attempt=attempt,
            usage=usage,
            cost_usd=cost,
            seconds=seconds,
            request_prefix=prefix,
            request=tuple(request[prefix:]),
            response=response,
            error=error,
        )

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
        return max(0, self._settings.context_tokens - estimate_tokens(messages))

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return self._inner.model_info


def _common_prefix(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        count += 1
    return count
