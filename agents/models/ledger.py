"""The record of a model's calls: every try an event of the run, charged to the budget."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from autogen_core.models import CreateResult, FunctionExecutionResultMessage, LLMMessage

from kernel_scientist.knowledge.tokens import count_tokens

from .. import events as ev
from ..budget import cost_of
from ..config import Price
from ..lab import Lab
from ..replies import clean
from .registry import CallFault, Feature, OpenedModel

__all__ = ["Attempt", "Ledger", "estimate_tokens", "request_key"]

_CHARACTERS_PER_TOKEN = 4
_RESPONSE_KEPT = 400_000
# Measured figures, which differ from run to run: fractions anywhere, any number in the judge's words.
_FRACTION = re.compile(r"-?\d+\.\d+(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_JUDGED = re.compile(r'"(?:report|evidence|result)": "(?:[^"\\]|\\.)*"')


def estimate_tokens(messages: Sequence[LLMMessage]) -> int:
    """A rough count, for where the endpoint reports none."""
    return sum(len(str(message.content)) for message in messages) // _CHARACTERS_PER_TOKEN + 1


def request_key(messages: Sequence[LLMMessage]) -> str:
    """A short hash of what is asked, with measured figures left out of it."""
    parts: list[str] = []
    for one in messages:
        if isinstance(one, FunctionExecutionResultMessage):
            parts += [_NUMBER.sub("#", result.content) for result in one.content]
        else:
            plain = _JUDGED.sub(lambda match: _NUMBER.sub("#", match[0]), str(one.content))
            parts.append(_FRACTION.sub("#", plain))
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(slots=True)
class Attempt:
    """One try at a call, and what of the answer has come so far."""

    messages: Sequence[LLMMessage]
    purpose: str
    number: int
    sent: frozenset[Feature]
    began: float = field(default_factory=time.perf_counter)
    characters: int = 0
    remark: str = ""

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began


@final
class Ledger:
    """Writes down one agent's calls of one model, and charges them."""

    def __init__(self, opened: OpenedModel, agent: str, lab: Lab) -> None:
        self._opened = opened
        self._agent = agent
        self._lab = lab
        self._price: Price | None = Price(input=0, output=0) if opened.free else opened.price
        self._last: list[dict[str, Any]] = []

    def _count(self, messages: Sequence[LLMMessage]) -> int:
        """Tokens of `messages` where the endpoint reports none; roughly, where they cost nothing."""
        if self._opened.free:
            return estimate_tokens(messages)
        return sum(count_tokens(str(message.content)) for message in messages)

    def answer(self, attempt: Attempt, result: CreateResult) -> None:
        """A try that was answered."""
        counted = result.usage
        usage = ev.Usage(
            prompt_tokens=counted.prompt_tokens,
            completion_tokens=counted.completion_tokens,
            cached_tokens=getattr(counted, "cached_tokens", 0),
            reasoning_tokens=getattr(counted, "reasoning_tokens", 0),
        )
        if not usage.total_tokens:
            words = f"{result.thought or ''}{result.content}"
            usage = ev.Usage(
                prompt_tokens=self._count(attempt.messages),
                completion_tokens=len(words) // _CHARACTERS_PER_TOKEN + 1,
                estimated=True,
            )
        response = result.model_dump(mode="json", exclude={"logprobs", "usage"}, exclude_none=True)
        if isinstance(result.content, str):
            response["content"] = clean(result.content, _RESPONSE_KEPT)
        if result.thought:
            response["thought"] = clean(result.thought, _RESPONSE_KEPT)
        self._emit(attempt, usage, response=response)

    def failure(self, attempt: Attempt, fault: CallFault) -> None:
        """A try that failed."""
        # A refused call costs nothing; one that was under way may be billed, so it counts as far as it came.
        usage = ev.Usage(
            prompt_tokens=self._count(attempt.messages) if fault.billed else 0,
            completion_tokens=attempt.characters // _CHARACTERS_PER_TOKEN,
            estimated=True,
        )
        self._emit(attempt, usage, error=clean(fault.sentence, 2_000))

    def _emit(
        self, attempt: Attempt, usage: ev.Usage, *,
        response: dict[str, Any] | None = None, error: str | None = None,
    ) -> None:  # fmt: skip
        cost = cost_of(usage, self._price)
        self._lab.budget.charge_call(usage, cost)
        request = [message.model_dump(mode="json", exclude_none=True) for message in attempt.messages]
        prefix = _common_prefix(self._last, request)
        self._last = request
        self._lab.recorder.emit(
            ev.ModelCall,
            agent=self._agent,
            purpose=attempt.purpose,
            model=self._opened.name,
            attempt=attempt.number,
            usage=usage,
            cost_usd=cost,
            seconds=attempt.seconds,
            request_key=request_key(attempt.messages),
            request_prefix=prefix,
            request=tuple(request[prefix:]),
            response=response,
            error=error,
        )


def _common_prefix(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        count += 1
    return count
