"""Characters that steer a terminal, reorder text or are not seen, and how to take them out of it.

Covered: C0 and C1 controls, bidirectional marks and overrides, zero-width, tag and variation characters,
line and paragraph separators, lone surrogates, private and unassigned code points. Not covered: letters that
look alike, and marks piled on a letter.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["escape_hidden", "printable", "without_escapes"]

_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that are drawn as nothing: Default_Ignorable_Code_Point of Unicode's
# DerivedCoreProperties.txt (16.0) less what the categories hold.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
)  # fmt: skip
_KEPT = frozenset("\n\t")
# ECMA-48: control sequences; strings (titles, links, device control) with their text, where they end on the
# same line, for an open one must not take what follows with it; and other escapes.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\n\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -~]"
)


def printable(text: str, instead: str = "") -> str:
    """`text` with `instead` for every character that is hidden; newlines (LF) and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    hidden = {ord(character): instead for character in set(text) if _is_hidden(character)}
    return text.translate(hidden) if hidden else text


def without_escapes(text: str) -> str:
    """`text` without terminal sequences, whole: what `printable` would leave of a colour is ``[31m``."""
    return _ESCAPES.sub("", text) if not text.isprintable() else text


def escape_hidden(json_text: str) -> str:
    """A JSON document with the hidden characters of its strings as ``\\uXXXX``: the same document."""
    if json_text.isascii():
        return json_text.replace("\x7f", "\\u007f")
    hidden = {ord(one): _escaped(one) for one in set(json_text) if one > "~" and _is_hidden(one)}
    return json_text.translate(hidden)


def _is_hidden(character: str) -> bool:
    if character in _KEPT:
        return False
    if unicodedata.category(character) in _CATEGORIES:
        return True
    return any(first <= ord(character) <= last for first, last in _IGNORABLE)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
