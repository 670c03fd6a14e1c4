"""The OpenAI protocol's JSON: messages and tools to what is sent, what comes back to an answer.

Nothing that an endpoint sends is taken for granted: what is not there or of another type is a
`NotACompletion` where there is no answer without it, and left out otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema

__all__ = [
    "MAX_ANSWER",
    "Answer",
    "DetailedUsage",
    "NotACompletion",
    "as_tools",
    "as_wire",
    "completion_of",
    "items_of",
]

MAX_ANSWER = 2_000_000
"""Characters of an answer that are looked at; a streamed one is broken off there."""

_FINISH: Mapping[str, Literal["stop", "length", "function_calls", "content_filter"]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "function_calls",
    "function_call": "function_calls",
    "content_filter": "content_filter",
}
_THOUGHT = re.compile(r"\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class NotACompletion(Exception):  # noqa: N818 - named by what came
    """What the endpoint sent is not a chat completion; the text says what is wrong with it."""


@dataclass
class DetailedUsage(RequestUsage):
    """What AutoGen counts, and of it what the service had read before and what went into reasoning."""

    cached_tokens: int = 0
    reasoning_tokens: int = 0


def as_wire(messages: Sequence[LLMMessage]) -> list[dict[str, Any]]:
    """The messages as the protocol wants them. A model's reasoning is not sent back to it."""
    wire: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case SystemMessage():
                wire.append({"role": "system", "content": _sendable(message.content)})
            case UserMessage():
                wire.append({"role": "user", "content": _sendable(str(message.content))})
            case AssistantMessage(content=str(text)):
                wire.append({"role": "assistant", "content": _sendable(text)})
            case AssistantMessage():
                calls = [_wire_call(one) for one in message.content if isinstance(one, FunctionCall)]
                wire.append({"role": "assistant", "content": None, "tool_calls": calls})
            case FunctionExecutionResultMessage():
                wire += [
                    {"role": "tool", "tool_call_id": one.call_id, "content": _sendable(one.content)}
                    for one in message.content
                ]
    return wire


def _sendable(text: str) -> str:
    """`text` without halves of characters, which no JSON in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _wire_call(call: FunctionCall) -> dict[str, Any]:
    # Services refuse a conversation whose earlier calls do not parse, so a broken one is quoted.
    arguments = _sendable(call.arguments)
    if not _is_object(arguments):
        arguments = json.dumps({"text": arguments[:2_000]})
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def as_tools(tools: Sequence[Tool | ToolSchema]) -> list[dict[str, Any]]:
    """The tools' descriptions as the protocol wants them."""
    schemas = [tool if isinstance(tool, dict) else tool.schema for tool in tools]
    return [
        {
            "type": "function",
            "function": {
                "name": schema["name"],
                "description": schema.get("description", ""),
                "parameters": schema.get("parameters", {"type": "object", "properties": {}}),
            },
        }
        for schema in schemas
    ]


class Answer:
    """An answer as it comes together, from one message or from the deltas of a stream."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thought: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._usage = DetailedUsage(0, 0)
        self.characters = 0

    @property
    def finished(self) -> bool:
        """Whether the endpoint has said that this is all."""
        return self._finish is not None

    def cut(self) -> None:
        """Take what has come as an answer that was too long."""
        self._finish = "length"

    def add(self, message: Mapping[str, Any]) -> str:
        """Add a message or a delta; returns its text."""
        text = _text(message.get("content"))
        # Two names are in use for what a model thought before it answered.
        thought = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
        refusal = _text(message.get("refusal"))
        for parts, new in ((self._text, text), (self._thought, thought), (self._refusal, refusal)):
            if new:
                parts.append(new)
        for place, call in enumerate(items_of(message.get("tool_calls"))):
            self._add_call(place, call)
        self.characters += len(text) + len(thought) + len(refusal)
        return text

    def _add_call(self, place: int, call: object) -> None:
        if not isinstance(call, dict):
            raise NotACompletion("a tool call in it is not an object")
        values = cast("dict[str, Any]", call)
        index = values.get("index")
        known = self._calls.setdefault(
            index if isinstance(index, int) else place, {"id": "", "name": "", "arguments": ""}
        )
        function = values.get("function")
        named = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
        arguments = named.get("arguments")
        # Some endpoints send the arguments as an object.
        text = json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)
        for key, new in (("id", _text(values.get("id"))), ("name", _text(named.get("name")))):
            known[key] += new
        known["arguments"] += text
        self.characters += len(text)

    def finish(self, reason: object) -> None:
        if isinstance(reason, str):
            self._finish = reason

    def count(self, usage: object) -> None:
        """Take the token counts, as far as they are counts."""
        if not isinstance(usage, dict):
            return
        values = cast("dict[str, Any]", usage)
        prompt, completion = _count(values, "prompt_tokens"), _count(values, "completion_tokens")
        cached = _count(values.get("prompt_tokens_details"), "cached_tokens")
        self._usage = DetailedUsage(
            prompt,
            completion,
            min(prompt, cached or _count(values, "prompt_cache_hit_tokens")),
            min(completion, _count(values.get("completion_tokens_details"), "reasoning_tokens")),
        )

    def result(self) -> CreateResult:
        """The answer: tool calls where there are any, else the text, else the words of a refusal."""
        text, thought = "".join(self._text), "".join(self._thought)
        if not thought and (match := _THOUGHT.match(text)):
            thought, text = match[1], text[match.end() :]
        calls = [_call(number, one) for number, one in sorted(self._calls.items())]
        if calls and text:
            thought = f"{thought}\n{text}".strip()
        return CreateResult(
            finish_reason="function_calls" if calls else _FINISH.get(self._finish or "", "unknown"),
            content=calls or text or "".join(self._refusal),
            usage=self._usage,
            cached=False,
            thought=thought or None,
        )


def _call(number: int, call: Mapping[str, str]) -> FunctionCall:
    # The name and the id go back to the endpoint, which refuses others than these.
    name = _NOT_IN_NAMES.sub("_", call["name"])[:64] or "unnamed"
    return FunctionCall(id=call["id"] or f"call_{number}", name=name, arguments=call["arguments"])


def completion_of(text: str) -> CreateResult:
    """The answer in the body of a plain call. Raises `NotACompletion`."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        kind = "text, such as an error page, and not JSON" if text.strip() else "empty"
        raise NotACompletion(f"it is {kind}") from None
    choices = cast("dict[str, Any]", body).get("choices") if isinstance(body, dict) else None
    first = next(iter(items_of(choices)), None)
    message = cast("dict[str, Any]", first).get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise NotACompletion("it has no choices with a message")
    answer = Answer()
    answer.add(cast("dict[str, Any]", message))
    answer.finish(cast("dict[str, Any]", first).get("finish_reason"))
    answer.count(cast("dict[str, Any]", body).get("usage"))
    return answer.result()


def items_of(value: object) -> list[object]:
    """The items of a list; none where it is none."""
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    # Content may come in parts, of which those with text count.
    parts = [cast("dict[str, Any]", one) for one in items_of(value) if isinstance(one, dict)]
    return "".join(one["text"] for one in parts if isinstance(one.get("text"), str))


def _count(values: object, key: str) -> int:
    found = cast("dict[str, Any]", values).get(key) if isinstance(values, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
