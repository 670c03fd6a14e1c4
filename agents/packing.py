"""Fitting what an agent is asked into what its model can read, and saying what was left out.

Tokens are tiktoken's; another tokenizer may need more, so some of the window is kept free.
"""

from __future__ import annotations

from collections.abc import Sequence

from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage

from kernel_scientist.knowledge.tokens import count_tokens

from .requests import CodeRequest, Request, ResearchRequest, SelectRequest, render_request

__all__ = ["fit_messages", "pack", "room_for"]

# Other tokenizers make more of code than the one we count with.
_SLACK = 0.9
# What a request may take of the room: tool results, repairs and bad replies come on top.
_SHARE = 0.75
_STUB = "[left out for want of room]"
_SHORT_REPLY = 400


def room_for(window: int, answer_tokens: int, *fixed: str) -> int:
    """Tokens of a `window` left for a conversation beside the answer and `fixed` texts."""
    free = int(window * _SLACK) - answer_tokens - sum(count_tokens(text) for text in fixed)
    return max(500, free)


def pack(request: Request, room: int) -> tuple[Request, tuple[str, ...]]:
    """`request` cut to its share of `room` tokens, and the names of what was cut."""
    limit = int(room * _SHARE)
    cut: list[str] = []
    for name, smaller in _steps(request):
        if _fits(render_request(request), limit):
            break
        changed = request.model_copy(update=smaller)
        if changed != request:
            request = changed
            cut.append(name)
    return request, tuple(cut)


def fit_messages(messages: Sequence[LLMMessage], room: int) -> tuple[list[LLMMessage], tuple[str, ...]]:
    """The conversation cut to `room` tokens, oldest first, and what was cut; calls keep their results.

    The system prompt, the request and the last message are never touched.
    """
    kept = list(messages)
    cut: list[str] = []
    for index in range(2, len(kept) - 1):
        if _fits("".join(str(one.content) for one in kept), room):
            break
        name, shorter = _shorter(kept[index])
        if name:
            kept[index] = shorter
            cut.append(name)
    return kept, tuple(dict.fromkeys(cut))


def _shorter(message: LLMMessage) -> tuple[str, LLMMessage]:
    match message:
        case FunctionExecutionResultMessage():
            stubs = [one.model_copy(update={"content": _STUB}) for one in message.content]
            return "earlier tool results", FunctionExecutionResultMessage(content=stubs)
        case AssistantMessage(content=str(text)) if len(text) > _SHORT_REPLY:
            short = f"{text[:_SHORT_REPLY]} {_STUB}"
            return "earlier replies", AssistantMessage(content=short, source=message.source)
        case _:
            return "", message


def _fits(text: str, limit: int) -> bool:
    # No text has more tokens than bytes, and most are far from the limit: counting is rarely needed.
    return len(text.encode("utf-8", "replace")) <= limit or count_tokens(text) <= limit


def _steps(request: Request) -> list[tuple[str, dict[str, object]]]:
    """What may go, the least missed first; each step is (name, the fields it changes)."""
    match request:
        case SelectRequest():
            rows = request.population
            return [("digest", {"digest": ()}), ("all but 12 of the population", {"population": rows[:12]})]
        case ResearchRequest():
            steps: list[tuple[str, dict[str, object]]] = [
                ("all but 3 passages", {"passages": request.passages[:3]}),
                ("the Reference", {"reference": None}),
                ("passages", {"passages": ()}),
                ("digest", {"digest": ()}),
                ("the record of the strategies", {"strategies": ()}),
            ]
            if request.tuning is not None:
                fewer = request.tuning.model_copy(update={"tried": request.tuning.tried[:40]})
                steps.insert(1, ("all but 40 configurations", {"tuning": fewer}))
            return steps
        case CodeRequest():
            return [
                ("all but 2 passages", {"passages": request.passages[:2]}),
                ("the Reference", {"reference": None}),
                ("digest", {"digest": ()}),
                ("all but the last failure", {"failures": request.failures[-1:]}),
                ("passages", {"passages": ()}),
            ]
        case _:
            return []
