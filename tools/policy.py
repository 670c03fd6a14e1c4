"""What a kernel's text may not contain, whatever it computes.

Covered: files of the host that the text would pull in (``#include``, ``#embed``, ``.incbin``), and what
would make the compiler name a wrong file and line (``#line``).
Not covered, because a rule over text cannot be sound there: what the code does. That is left to the
cage it is compiled and run in and to the judge, which reads outputs and clock itself. Words are never
banned: comments and names are free, and inline assembly that is not AMD's fails to compile for gfx942.
"""

from __future__ import annotations

import re

__all__ = ["policy_violation"]

# Freestanding headers hold types and limits only, and come with the compiler.
_FREESTANDING = frozenset({"cfloat", "climits", "cstddef", "cstdint", "type_traits"}) | frozenset(
    {"float.h", "limits.h", "stdbool.h", "stddef.h", "stdint.h"}
)
# In this order: raw strings and literals must win over the comment signs they may hold. A token that is never
# closed reaches as far as the compiler's would, so that no text makes this look at anything twice.
_TOKENS = re.compile(
    r'(?P<raw>(?<![0-9A-Za-z_])(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?(?:\)(?P=tag)"|\Z))'
    r'|(?P<string>"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z))'
    r"|(?P<char>(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))"
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))",
    re.DOTALL,
)
_DIRECTIVE = re.compile(
    r"^[^\S\n]*(?:#|%:)[^\S\n]*(?P<name>include_next|include|import|embed|line|\d+)\b(?P<rest>[^\n]*)", re.M
)
_ALLOWED = re.compile(r"<(?:(?:hip|hipcub|ks)/[A-Za-z0-9_/]+\.h(?:pp)?|(?P<bare>[a-z_]+(?:\.h)?))>\s*$")
_INCBIN = re.compile(r"\.\s*incbin\b", re.IGNORECASE)


def policy_violation(source: str) -> str | None:
    """One sentence with the line when the text reads files of the host or forges places, else None."""
    joined, lines = _splice(source)
    bare = _TOKENS.sub(_blank, joined)
    for found in _DIRECTIVE.finditer(bare):
        allowed = _ALLOWED.match(found["rest"].strip()) if found["name"] == "include" else None
        if allowed is None or (allowed["bare"] and allowed["bare"] not in _FREESTANDING):
            line = _line(bare, found.start(), lines)
            what = f"#{found['name']} {found['rest'].strip()[:60]}"
            if found["name"] == "line" or found["name"].isdigit():
                return f"line {line}: '{what}' is not allowed; it would misplace the compiler's messages"
            return f"line {line}: '{what}' is not allowed; include only <hip/...> and <hipcub/...> headers"
    for token in _TOKENS.finditer(joined):
        if token["comment"] is None and (incbin := _INCBIN.search(token.group())):
            line = _line(joined, token.start() + incbin.start(), lines)
            return f"line {line}: '.incbin' reads a file of the host, which a kernel may not"
    return None


def _splice(source: str) -> tuple[str, list[int]]:
    """The text with backslash-newlines joined as the compiler does, and the offsets of the joints."""
    text = source.replace("\r\n", "\n")
    joints: list[int] = []
    parts: list[str] = []
    length = 0
    for part in re.split(r"\\[^\S\n]*\n", text):
        parts.append(part)
        length += len(part)
        joints.append(length)
    return "".join(parts), joints[:-1]


def _blank(token: re.Match[str]) -> str:
    """Comments and raw strings become blanks of the same length, so that offsets and lines stay."""
    if token["comment"] is None and token["raw"] is None:
        return token.group()
    return re.sub(r"[^\n]", " ", token.group())


def _line(text: str, offset: int, joints: list[int]) -> int:
    return text.count("\n", 0, offset) + sum(joint <= offset for joint in joints) + 1
