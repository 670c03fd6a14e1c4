"""The Coder's account of a rubric, point by point, read from whatever form a model gives it in.

Covered: a list of objects or sentences, an object by number or by point, true and false, other words for a
status. A point that nothing was said of is `not reported`; nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from .messages import RubricPoint, RubricStatus
from .replies import clean

__all__ = ["account_of", "told"]

_MOST = 60
_WHY = 400
_NAMES = ("item", "point", "number", "rubric", "step")
_STATUSES = ("status", "result", "done", "state")
_REASONS = ("why", "reason", "note", "comment", "how")
_MARK = re.compile(r"[:;,(]| - ")
_LEADING = re.compile(r"\s*(?:point|item|step)?\s*(\d{1,2})\s*[.):]?\s+", re.IGNORECASE)
_WORDS: tuple[tuple[str, RubricStatus], ...] = (
    (r"not|no|none|left out|skip\w*|omit\w*|drop\w*|false|fail\w*|missing|impossible", "not done"),
    (r"partial\w*|partly|chang\w*|differ\w*|instead|modif\w*|adapt\w*|replac\w*", "changed"),
    (r"done|yes|implement\w*|ok|okay|complete\w*|true|full\w*|applied|as asked", "done"),
)


def account_of(said: object, rubric: Sequence[str]) -> tuple[RubricPoint, ...]:
    """For each point of `rubric` what `said` says of it; the first word on a point counts."""
    found: dict[int, tuple[RubricStatus, str]] = {}
    for place, (name, status, why) in enumerate(_entries(said)):
        index = _index(name, place, rubric)
        if index is not None:
            found.setdefault(index, (_status(status), clean(why.strip(), _WHY)))
    nothing: tuple[RubricStatus, str] = ("not reported", "")
    points = ((item, *found.get(index, nothing)) for index, item in enumerate(rubric))
    return tuple(RubricPoint(item=item, status=status, why=why) for item, status, why in points)


def told(points: Sequence[RubricPoint]) -> str:
    """The account in a sentence: how much was done, and what was not, and why."""
    if not points or all(one.status == "not reported" for one in points):
        return "the Coder did not report on the rubric point by point"
    done = sum(one.status == "done" for one in points)
    others = "".join(f"; {one.text}" for one in points if one.status != "done")
    return f"{done} of {len(points)} points of the rubric done{others}"


def _entries(said: object) -> Iterator[tuple[object, object, str]]:
    """(which point, status, why) of each entry."""
    if isinstance(said, Mapping):
        for name, value in list(cast("Mapping[Any, object]", said).items())[:_MOST]:
            yield (name, *_status_and_why(value))
    elif isinstance(said, list):
        for value in cast("list[object]", said)[:_MOST]:
            yield _entry(value)


def _entry(value: object) -> tuple[object, object, str]:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return (_first(fields, _NAMES), *_status_and_why(fields))
    if isinstance(value, str) and (number := _LEADING.match(value)):
        return (number[1], *_status_and_why(value[number.end() :]))
    return (None, *_status_and_why(value))


def _status_and_why(value: object) -> tuple[object, str]:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        why = _first(fields, _REASONS)
        return _first(fields, _STATUSES), why if isinstance(why, str) else ""
    if isinstance(value, str):
        head, *rest = _MARK.split(value, maxsplit=1)
        return head, rest[0].strip(" )") if rest else ""
    return value, ""


def _first(fields: Mapping[str, object], names: Sequence[str]) -> object:
    return next((fields[name] for name in names if name in fields), None)


def _index(name: object, place: int, rubric: Sequence[str]) -> int | None:
    """Which point is meant: by its number from 1, by its words, else by the entry's place."""
    if isinstance(name, str) and name.strip().isdecimal() and len(name) < 9:
        name = int(name)
    if isinstance(name, int) and not isinstance(name, bool):
        return name - 1 if 1 <= name <= len(rubric) else None
    if isinstance(name, str) and name.strip():
        near = get_close_matches(name[:500], [one[:500] for one in rubric], n=1, cutoff=0.6)
        if near:
            return [one[:500] for one in rubric].index(near[0])
    return place if place < len(rubric) else None


def _status(value: object) -> RubricStatus:
    if isinstance(value, bool):
        return "done" if value else "not done"
    words = str(value).strip().casefold().replace("_", " ")[:200] if isinstance(value, str) else ""
    for pattern, status in _WORDS:
        if re.match(rf"(?:{pattern})\b", words):
            return status
    for pattern, status in _WORDS[1:]:
        if re.search(rf"\b(?:{pattern})\b", words):
            return status
    return "not reported"
