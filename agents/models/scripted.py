"""A fake model for tests and examples: it plays back replies it was given, whatever is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, UserMessage

from ..requests import Request, find_request
from .local import LocalModel

__all__ = ["Reply", "ScriptedModel"]

Reply = str | list[FunctionCall] | Exception


@final
class ScriptedModel(LocalModel):
    """Gives its replies in turn, or what a function makes of the request; raises those that are exceptions.

    When the list is used up, the last reply is given again. Each answer takes `latency_s` seconds.
    """

    name = "scripted"

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Request, Sequence[LLMMessage], Sequence[str]], Reply],
        *,
        latency_s: float = 0.0,
    ) -> None:
        self.latency_s = latency_s
        self._function = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self.calls = 0

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        return await super().create(messages, **options)

    def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
        reply = self._next(messages, tools)
        self.calls += 1
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _next(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        if self._function is None:
            return self._replies[min(self.calls, len(self._replies) - 1)]
        request = request_of(messages)
        assert request is not None, "the prompt carries no request"
        return self._function(request, messages, tools)


def request_of(messages: Sequence[LLMMessage]) -> Request | None:
    """The last request among the messages."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            request = find_request(message.content)
            if request is not None:
                return request
    return None
