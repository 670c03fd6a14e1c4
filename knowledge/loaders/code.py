"""Source code: one section for each function or type, with the comment above it.

Covered: C++ and its GPU dialects inside namespaces and ``extern "C"``, Python with decorators and methods,
LLVM IR, MLIR, assembly by labels. Not covered: what macros declare.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from .document import LoadedDocument, Section, decode

__all__ = ["load"]

_PYTHON = (".py", ".pyi")
_COMMENT = re.compile(r"\s*(//|/\*|\*|#(?!\w)|;)")
# What may hold a brace that opens or closes nothing.
_OPAQUE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
# A directive of the preprocessor with the lines that continue it; macros need not be balanced.
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_WRAPPER = re.compile(r"^\s*(?:(?:inline\s+)?namespace\b[^;{}()]*|extern\s+\"[^\"]*\"\s*)\{")
_DECLARATIONS = (
    re.compile(r"^(?:define|func\.func)\b[^@\n]*@([\w.]+)", re.MULTILINE),
    re.compile(
        r"\b(?:struct|class|enum|union)\s+(?:class\s+)?(?:alignas\([^)]*\)\s*)?(?:\w+::)*(\w+)[^;(){}]*\{"
    ),
    # The name before a parameter list, as in `__global__ void __launch_bounds__(256) matmul(`.
    re.compile(
        r"\b(?!(?:if|for|while|switch|return|sizeof|defined|__launch_bounds__|__attribute__)\b)(\w+)"
        r"\s*\([^;{}]*\)[^;{}()]*\{"
    ),
    re.compile(r"^(\w[\w.$]*):", re.MULTILINE),
)
# A class with more lines than this is cut into its methods.
_LONG_CLASS = 60


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a source file; its name is the title."""
    text = decode(raw)
    sections = _python(text) if Path(name).suffix.lower() in _PYTHON else None
    return LoadedDocument(name, tuple(_braced(text) if sections is None else sections))


def _python(text: str) -> list[Section] | None:
    """Sections along the syntax tree; ``None`` for what this Python cannot parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other people's invalid escapes
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = text.split("\n")
    starts = list(_starts(body, ()))
    if not starts:
        return [Section((), text.strip("\n"), verbatim=True)]
    # A comment right above belongs to what it is above of.
    cuts = [_with_comment(lines, line) for line, _ in starts]
    paths = [(), *(path for _, path in starts)]
    pieces = [(path, lines[cut:end]) for path, cut, end in zip(paths, [0, *cuts], [*cuts, None], strict=True)]
    joined = [(path, "\n".join(piece).strip("\n")) for path, piece in pieces]
    return [Section(path, piece, verbatim=True) for path, piece in _without_stubs(joined) if piece.strip()]


def _starts(body: list[ast.stmt], above: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """First line (from 0) and names of each section; what is between functions goes with the one before."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        path = (*above, node.name)
        yield first, path
        if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno > _LONG_CLASS:
            yield from _starts(node.body, path)


def _with_comment(lines: list[str], line: int) -> int:
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def _without_stubs(
    pieces: list[tuple[tuple[str, ...], str]],
) -> list[tuple[tuple[str, ...], str]]:
    """Imports and constants before the first function go with it when they are short."""
    if len(pieces) > 1 and pieces[0][1].count("\n") < 8:
        (_, head), (path, first), *rest = pieces
        return [(path, f"{head}\n\n\n{first}".strip("\n")), *rest]
    return pieces


def _braced(text: str) -> Iterator[Section]:
    for block in _blocks(text):
        body = block.strip("\n")
        if body.strip():
            name = _declared(body)
            yield Section((name,) if name else (), body, verbatim=True)


def _blocks(text: str) -> Iterator[str]:
    """Cut where nothing is open, before a line that may start a declaration, once one has been made."""
    lines = text.split("\n")
    depths = _depths(text)
    block: list[str] = []
    for index, line in enumerate(lines):
        before = lines[index - 1] if index else ""
        may_start = bool(line.strip()) and line.lstrip()[0] not in "})]{"
        ended = not before.strip() or before.rstrip().endswith(("}", "};"))
        if may_start and ended and depths[index] <= 0 and index and _declared("\n".join(block)):
            yield "\n".join(block)
            block = []
        block.append(line)
    yield "\n".join(block)


def _depths(text: str) -> list[int]:
    """How many braces are open at the start of each line, those of namespaces and the like not counted."""
    code = _hidden(_DIRECTIVE, _hidden(_OPAQUE, text))
    depths: list[int] = []
    opened: list[bool] = []
    for line, shown in zip(code.split("\n"), text.split("\n"), strict=True):
        depths.append(sum(opened))
        wraps = _WRAPPER.match(shown) is not None
        for character in line:
            if character == "{":
                opened.append(not wraps)
                wraps = False
            elif character == "}" and opened:
                opened.pop()
    return depths


def _hidden(pattern: re.Pattern[str], text: str) -> str:
    """`text` of the same lines and columns, with blanks where `pattern` matches."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _declared(text: str) -> str | None:
    """The name of the first function or type that `text` declares."""
    shown = _hidden(_DIRECTIVE, text)
    code = "\n".join(
        line for line in shown.split("\n") if not _COMMENT.match(line) and not _WRAPPER.match(line)
    )
    found = [match for pattern in _DECLARATIONS if (match := pattern.search(code))]
    return min(found, key=lambda match: match.start())[1] if found else None
