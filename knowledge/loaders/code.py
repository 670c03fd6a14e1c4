"""Source code: one section for each top-level function or type, with the comment above it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .document import LoadedDocument, Section, decode

__all__ = ["load"]

_C_OR_PYTHON_COMMENT = re.compile(r"\s*(//|/\*|\*|#(?!\w)|;)")
_DECLARATIONS = (
    re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE),
    re.compile(r"^(?:define|func\.func)\b[^@\n]*@([\w.]+)", re.MULTILINE),
    re.compile(r"\b(?:struct|class|enum|union|namespace)\s+(?:\w+::)*(\w+)[^;(]*\{"),
    # The name before a parameter list, as in `__global__ void __launch_bounds__(256) matmul(`.
    re.compile(
        r"\b(?!(?:if|for|while|switch|return|sizeof|__launch_bounds__|__attribute__)\b)(\w+)\s*\([^;{}]*\)[^;{}]*\{"
    ),
    re.compile(r"^(\w[\w.$]*):", re.MULTILINE),
)


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a source file; its name is the title."""
    text = decode(raw)
    return LoadedDocument(name, tuple(_sections(text)))


def _sections(text: str) -> Iterator[Section]:
    for block in _blocks(text.split("\n")):
        body = "\n".join(block).strip("\n")
        if body.strip():
            name = _declared(body)
            yield Section((name,) if name else (), body, verbatim=True)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Cut at blank lines outside braces before an unindented line, once something has been declared."""
    block: list[str] = []
    depth = 0
    for index, line in enumerate(lines):
        starts = bool(line) and not line[0].isspace() and line[0] not in "})]"
        if starts and depth <= 0 and index and not lines[index - 1].strip() and _declared("\n".join(block)):
            yield block
            block = []
        block.append(line)
        if not _C_OR_PYTHON_COMMENT.match(line):
            depth += line.count("{") - line.count("}")
    yield block


def _declared(text: str) -> str | None:
    """The name of the first function or type that `text` declares."""
    code = "\n".join(line for line in text.split("\n") if not _C_OR_PYTHON_COMMENT.match(line))
    for pattern in _DECLARATIONS:
        found = pattern.search(code)
        if found:
            return found[1]
    return None
