"""What was said, in the form that the GenAI conventions give to messages: for spans that may hold it."""

from __future__ import annotations

import json
from typing import Any, cast

from ..events import ModelCall, ToolCall
from ..transcript.values import Json, json_list

__all__ = ["call_content", "tool_content"]

_ROLES = {
    "SystemMessage": "system",
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
}


def call_content(event: ModelCall) -> dict[str, str]:
    """The messages that were new in a model call, and its answer."""
    found = {"gen_ai.input.messages": _text([_message(one) for one in event.request])}
    response = event.response or {}
    parts = _parts(response.get("content"))
    thought = response.get("thought")
    if isinstance(thought, str) and thought:
        parts.insert(0, {"type": "reasoning", "content": thought})
    if parts:
        answer = {"role": "assistant", "parts": parts, "finish_reason": response.get("finish_reason")}
        found["gen_ai.output.messages"] = _text([answer])
    return found


def tool_content(event: ToolCall) -> dict[str, str]:
    """What a tool was given, and what it gave back."""
    return {
        "gen_ai.tool.call.arguments": _text(event.arguments),
        "gen_ai.tool.call.result": event.result,
    }


def _message(message: Json) -> Json:
    return {
        "role": _ROLES.get(str(message.get("type")), "user"),
        "parts": _parts(message.get("content")),
    }


def _parts(content: object) -> list[Json]:
    """Text, tool calls or tool results as parts of a message."""
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    return [_part(cast("Json", one)) for one in json_list(content) if isinstance(one, dict)]


def _part(one: Json) -> Json:
    if "arguments" in one:
        return {
            "type": "tool_call",
            "id": one.get("id"),
            "name": one.get("name"),
            "arguments": one["arguments"],
        }
    return {"type": "tool_call_response", "id": one.get("call_id"), "response": one.get("content")}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
