"""What makes two kernel files the same program: their text less what cannot change what is computed.

Left out: comments, white space between tokens, the order of the plan's constants, ``[tune]``, and the names
of variables that a file declares and uses itself. Two files of one normal form are the same program.

Not covered, so that such files count as different although they compute the same: names of functions and
types, names that also occur as members or in preprocessor lines, statements in another order. Where a text
can see its own lines or names (``__LINE__``, raw strings, inline assembly ...) nothing is left out.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
from importlib import resources
from importlib.resources.abc import Traversable

from kernel_scientist.tools.expressions import Expression
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.plan import Launch

from .scopes import Token, renamable

__all__ = ["code_form", "normal_key", "tokens_of"]

# In the order of C++'s own longest match, so that equal sequences of tokens are equal programs.
_TOKENS = re.compile(
    r"(?P<directive>(?:^|(?<=\n))[^\S\n]*\#[^\n]*)"
    r"|(?P<string>(?:u8|[uUL])?\"(?:\\.|[^\"\\\n])*\"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')"
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|'(?=\w)|[\w.])*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><=>|<<=|>>=|\.\.\.|->\*|::|\+\+|--|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\*|[^\w\s])",
    re.ASCII,
)
_COMMENT_OR_STRING = re.compile(
    r"(?P<string>\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/", re.DOTALL
)
# Through these a text can tell how it is written.
_SELF_AWARE = re.compile(
    r"__LINE__|__FILE__|__COUNTER__|__\w*FUNCTION__|__func__|__builtin_(?:LINE|COLUMN|FILE|FUNCTION)"
    r"|source_location|\basm\b|__asm|R\"|\?\?|%:|<:|:>|<%|%>|##"
)
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*")
_DEFINED = re.compile(r"^[^\S\n]*#[^\S\n]*define[^\S\n]+(\w+)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def normal_key(kernel: Kernel | None, source: str) -> str:
    """The hash of the normal form; of the text as it is where the plan does not parse."""
    tokens = None if kernel is None else tokens_of(source)
    if kernel is None or tokens is None:
        form: object = ["text", source.replace("\r\n", "\n")]
    else:
        form = ["program", _plan_form(kernel), _named_by_place(tokens, _plan_words(kernel))]
    return hashlib.sha256(json.dumps(form).encode(errors="surrogatepass")).hexdigest()


def code_form(kernel: Kernel) -> str | None:
    """The normal form but for the values of the constants; ``None`` for a text that can see itself."""
    tokens = tokens_of(kernel.source)
    if tokens is None:
        return None
    plan = _plan_form(kernel)
    return json.dumps([plan["scratch"], plan["launch"], _named_by_place(tokens, _plan_words(kernel))])


def tokens_of(source: str) -> list[Token] | None:
    """The C++ tokens of a kernel file without its comments; ``None`` where that would not be safe."""
    text = source.removeprefix("\ufeff").replace("\r\n", "\n")
    if not text.isascii() or re.search(r"\\[^\S\n]*\n", text):
        return None
    bare = _COMMENT_OR_STRING.sub(lambda found: found["string"] or " ", text)
    if _SELF_AWARE.search(bare) or "/*" in bare:
        return None
    tokens: list[Token] = []
    place = 0
    for found in _TOKENS.finditer(bare):
        if bare[place : found.start()].strip():
            return None
        kind = str(found.lastgroup)
        word = found.group()
        tokens.append(Token(kind, " ".join(word.split()) if kind == "directive" else word))
        place = found.end()
    return None if bare[place:].strip() or any(one.text in "\"'" for one in tokens) else tokens


def _plan_words(kernel: Kernel) -> set[str]:
    """Names through which the plan speaks of the code: macros, kernels and their template arguments."""
    named = {word for one in kernel.plan.launches for word in _WORD.findall(one.kernel)}
    return named | kernel.plan.constants.keys()


def _named_by_place(tokens: list[Token], plan_words: set[str]) -> list[str]:
    """The tokens' texts, the names that may change replaced by numbers in the order of their first use."""
    kept = {word for one in tokens if one.kind == "directive" for word in _WORD.findall(one.text)}
    local, at_file_scope = renamable(tokens)
    macros, words = _header_words()
    free = (local | (at_file_scope - words)) - kept - plan_words - macros
    free = {name for name in free if not name.startswith("_") and not _CAPITALS.fullmatch(name)}
    numbers: dict[str, str] = {}
    # No token begins with a blank, so a number can be taken for nothing else.
    return [
        numbers.setdefault(one.text, f" {len(numbers)}")
        if one.kind == "name" and one.text in free
        else one.text
        for one in tokens
    ]


@functools.cache
def _header_words() -> tuple[frozenset[str], frozenset[str]]:
    """The macros of the headers that a kernel may include, and all their words, which may be global names."""
    macros: set[str] = set()
    words: set[str] = set()
    pending: list[Traversable] = [resources.files("kernel_scientist.sandbox") / "include"]
    while pending:
        place = pending.pop()
        if place.is_dir():
            pending += place.iterdir()
        else:
            text = place.read_text(encoding="utf-8")
            macros.update(_DEFINED.findall(text))
            words.update(_WORD.findall(text))
    return frozenset(macros), frozenset(words)


def _plan_form(kernel: Kernel) -> dict[str, object]:
    plan = kernel.plan
    return {
        "constants": {name: _form(Expression.parse(value)) for name, value in sorted(plan.constants.items())},
        "scratch": [[one.name, one.dtype, _form(one.size), repr(one.init)] for one in plan.scratch],
        "launch": [_launch_form(one) for one in plan.launches],
    }


def _launch_form(launch: Launch) -> object:
    return [
        launch.kernel.replace(" ", ""),
        [_form(one) for one in launch.grid],
        [_form(one) for one in launch.block],
        [_form(one) for one in launch.args],
        _form(launch.lds),
        None if launch.when is None else _form(launch.when),
        _form(launch.repeat),
    ]


def _form(expression: Expression) -> str:
    return ast.dump(expression.tree)
