"""Passages to a token budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .records import Passage
from .tokens import count_tokens, cut_to_tokens

__all__ = ["pack"]

_ELLIPSIS = " […]"
_SHORTEST = 32


def pack(passages: Iterable[Passage], max_tokens: int) -> list[Passage]:
    """The passages that fit into `max_tokens`, citations counted, in their order.

    One that does not fit is passed over for shorter ones after it; if none fits at all the first is cut, and
    ends in an ellipsis.
    """
    given = list(passages)
    packed: list[Passage] = []
    left = max_tokens
    for passage in given:
        cost = _cost(passage)
        if cost <= left:
            packed.append(passage)
            left -= cost
    if not packed and given:
        packed = _cut(given[0], max_tokens)
    return packed


def _cost(passage: Passage) -> int:
    return count_tokens(passage.text) + count_tokens(f"[{passage.id}] {passage.citation}\n")


def _cut(passage: Passage, max_tokens: int) -> list[Passage]:
    room = max_tokens - _cost(replace(passage, text=_ELLIPSIS))
    if room < _SHORTEST:
        return []
    text = cut_to_tokens(passage.text, room) + _ELLIPSIS
    return [replace(passage, text=text, tokens=count_tokens(text))]
