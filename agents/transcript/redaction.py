"""What is left out of a record before it is shared: code, the text of literature, or paths of the machine.

Covered: every place where the recorded events hold them. Prose is kept, less its fenced code: what a model
writes about code in its own words stays. Not covered: names, figures and addresses that somebody wrote there.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast, final

__all__ = ["LEFT_OUT", "Part", "Redaction"]

Part = Literal["code", "literature", "paths"]

LEFT_OUT = "[left out]"

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# Two names or more from the root; after a letter or a colon it is a part of something else, as of an address.
_PATH = re.compile(r"(?<![\w.:/~-])(?:~|/[\w.+@%~-]+)(?:/[\w.+@%~-]+)+/?")
# What a model was sent and answered holds code and passages, wherever the two are quoted.
_QUOTING = frozenset({"request", "response", "answer", "thought", "result"})
_CODE = frozenset({"source", "diff", "compile_log", "evidence", "message"})


@final
class Redaction:
    """Removes `parts` from JSON values; `apply` leaves what it is given as it was."""

    def __init__(self, parts: frozenset[Part]) -> None:
        self.parts = parts

    def apply(self, value: Any) -> Any:
        """`value` without the parts; a text that is taken out whole becomes `LEFT_OUT`."""
        if not self.parts:
            return value
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            is_passage = {"title", "text", "source"} <= fields.keys()
            content = fields.get("content")
            quotes = isinstance(content, dict) and "evidence" in content
            return {
                name: self._field(name, inner, is_passage=is_passage, quotes=quotes)
                for name, inner in fields.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.apply(one) for one in cast("list[Any]", value)]
        return self._text(value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any, *, is_passage: bool, quotes: bool) -> Any:
        if not value:
            return value
        if name in _QUOTING and self.parts & {"code", "literature"}:
            return _emptied(value)
        if "literature" in self.parts and is_passage and name == "text":
            return LEFT_OUT
        is_code = (name in _CODE and not is_passage) or (quotes and name == "text")
        if "code" in self.parts and is_code and isinstance(value, str):
            return LEFT_OUT
        return self.apply(value)

    def _text(self, text: str) -> str:
        if "code" in self.parts and "```" in text:
            text = _FENCE.sub(LEFT_OUT, text)
        return _PATH.sub("[path]", text) if "paths" in self.parts else text


def _emptied(value: Any) -> Any:
    """A value of the same kind that says it was left out: whoever reads it expects that kind."""
    if isinstance(value, str):
        return LEFT_OUT
    return [] if isinstance(value, (list, tuple)) else None if isinstance(value, dict) else value
