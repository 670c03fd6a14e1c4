"""Reading what a model answered: JSON among prose, whole files, SEARCH/REPLACE blocks.

Everything here raises `BadReply`, whose text tells the model what to mend. Covered: fences of any kind or
none, prose round the JSON, trailing commas, several objects. Not covered: JSON that was cut off.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from kernel_scientist.sandbox.printable import printable

from .interrupts import BadReply

__all__ = ["MAX_REPLY", "apply_edits", "clean", "find_json", "quote_json", "read_json", "read_source"]

MAX_REPLY = 400_000
"""Characters of a reply that are looked at; more is a fault by itself."""

T = TypeVar("T", bound=BaseModel)

_FENCE = re.compile(r"[ \t]*```[ \t]*([\w+-]*)")
_SEARCH = re.compile(r"<{5,9} ?SEARCH")
_DIVIDER = re.compile(r"={5,9}[ \t]*$")
_REPLACE = re.compile(r">{5,9} ?REPLACE")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_CODE_TAGS = frozenset({"hip", "cpp", "c++", "cuda", "c", "cc", "cxx", "hpp"})


def clean(text: str, limit: int) -> str:
    """`text` with a blank for every hidden character (`printable`), at most `limit` characters long."""
    short = printable(text, " ")
    return short if len(short) <= limit else short[: max(0, limit - 14)] + " … [cut short]"


def quote_json(value: Any) -> str:
    """`value` as JSON in ASCII without a backtick: data that can neither close a fence nor open one."""
    return json.dumps(value).replace("`", "\\u0060")


def read_json(text: str, kind: type[T]) -> T:
    """The reply's JSON object as a `kind`. Raises `BadReply` saying what is missing or wrong."""
    try:
        return kind.model_validate(find_json(text))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc'])) or 'reply'}: {one['msg']}" for one in error.errors()[:6]]
        raise BadReply("The JSON object does not have the form asked for: " + "; ".join(faults)) from None


def find_json(text: str) -> dict[str, Any]:
    """The JSON object of a reply: in a ``json`` fence, in any other, or the first in the prose."""
    _check_size(text)
    fences = _fences(text)
    tagged = [body for tag, body in fences if tag == "json"]
    plain = [body for tag, body in fences if tag != "json" and tag not in _CODE_TAGS]
    for body in [*reversed(tagged[-5:]), *reversed(plain[-5:]), text]:
        found = _first_object(body)
        if found is not None:
            return found
    raise BadReply("There is no JSON object in the reply. Answer with one in a ```json block.")


def _fences(text: str) -> list[tuple[str, str]]:
    """The fenced blocks as (tag, body), in one pass over the lines; one left open does not count."""
    blocks: list[tuple[str, str]] = []
    tag: str | None = None
    body: list[str] = []
    for line in _lines(text):
        fence = _FENCE.match(line)
        if tag is None:
            if fence:
                tag, body = fence[1].lower(), []
        elif fence and not fence[1]:
            blocks.append((tag, "".join(body)))
            tag = None
        else:
            body.append(line)
    return blocks


def _edits(text: str) -> list[tuple[str, str]]:
    """The (search, replace) pairs of a reply. Raises `BadReply` on a block that is not finished."""
    edits: list[tuple[str, str]] = []
    search: list[str] = []
    replace: list[str] | None = None
    inside = False
    for line in _lines(text):
        if not inside:
            inside = _SEARCH.match(line) is not None
            search, replace = [], None
        elif replace is None:
            if _DIVIDER.match(line.rstrip("\r\n")):
                replace = []
            else:
                search.append(line)
        elif _REPLACE.match(line):
            edits.append(("".join(search), "".join(replace)))
            inside = False
        else:
            replace.append(line)
    if inside:
        raise BadReply("The last SEARCH/REPLACE block is not finished; end it with >>>>>>> REPLACE.")
    return edits


def _first_object(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder(strict=False)
    # A brace that opens no JSON (code, say) is passed over; a bound keeps hostile text cheap.
    for attempt, match in enumerate(re.finditer(r"\{", text)):
        if attempt >= 50:
            return None
        for candidate in (text[match.start() :], _TRAILING_COMMA.sub(r"\1", text[match.start() :])):
            try:
                value, _ = decoder.raw_decode(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and value:
                return cast("dict[str, Any]", value)
    return None


def read_source(text: str, base: str) -> str:
    """The new kernel of a Coder's reply: edits applied to `base`, or a whole file in a code fence."""
    _check_size(text)
    edits = _edits(text)
    if edits:
        return apply_edits(base, edits)
    fences = _fences(text)
    bodies = [body for tag, body in fences if tag in _CODE_TAGS]
    bodies = bodies or [body for tag, body in fences if tag != "json" and "__global__" in body]
    if len(bodies) == 1:
        return bodies[0]
    if len(bodies) > 1:
        raise BadReply(
            f"There are {len(bodies)} code blocks; give the whole file in exactly one ```hip block."
        )
    raise BadReply(
        "There is no code in the reply. Give the whole file in one ```hip block, or SEARCH/REPLACE blocks "
        "(<<<<<<< SEARCH, =======, >>>>>>> REPLACE, each on its own line) against the Base."
    )


def apply_edits(base: str, edits: list[tuple[str, str]]) -> str:
    """`base` with each (search, replace) of whole lines applied in turn; a search must match one place.

    Where no lines are equal, they are compared without their trailing blanks.
    """
    lines = _lines(base)
    for number, (search, replace) in enumerate(edits, start=1):
        wanted = _lines(search)
        if not search.strip():
            raise BadReply(f"SEARCH block {number} is empty; quote the lines of the Base to be replaced.")
        places = _places(lines, wanted) or _places(
            [one.rstrip() for one in lines], [one.rstrip() for one in wanted]
        )
        if len(places) != 1:
            found = f"matches {len(places)} places in the Base" if places else "is not in the Base"
            raise BadReply(
                f"SEARCH block {number} {found}; quote whole lines exactly, enough of them to be unique. "
                f"It began: {quote_json(clean(search.strip(), 200))}"
            )
        lines[places[0] : places[0] + len(wanted)] = _lines(replace)
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """The lines, each with its LF; other line separators of Unicode are ordinary characters here."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [f"{line}\n" for line in (lines[:-1] if lines[-1] == "" else lines)]


def _places(lines: list[str], wanted: list[str]) -> list[int]:
    return [i for i in range(len(lines) - len(wanted) + 1) if lines[i : i + len(wanted)] == wanted]


def _check_size(text: str) -> None:
    if not text.strip():
        raise BadReply("The reply is empty.")
    if len(text) > MAX_REPLY:
        raise BadReply(f"The reply has {len(text)} characters; at most {MAX_REPLY} are read. Be brief.")
