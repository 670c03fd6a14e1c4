"""C++ expressions of host code as expressions of a plan."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..expressions import FUNCTIONS, MAX_DEPTH, MAX_LENGTH
from .device import Macro
from .syntax import children, field, parse_program, text_of, try_text

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["DTYPE_OF", "Term", "Translator", "Unknown", "bytes_of", "parse_expression", "safe_name"]

DTYPE_OF = {
    "float": "float32", "double": "float64", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32",
    "long": "int64", "long long": "int64", "unsigned long": "uint64", "unsigned long long": "uint64",
    "size_t": "uint64", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "uchar": "uint8",
    "short": "int16", "unsigned short": "uint16", "uint": "uint32", "bool": "uint8",
    "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16", "uint16_t": "uint16", "int32_t": "int32",
    "uint32_t": "uint32", "int64_t": "int64", "uint64_t": "uint64", "half": "float16", "__half": "float16",
    "_Float16": "float16", "__hip_bfloat16": "bfloat16", "hip_bfloat16": "bfloat16",
    "__hip_fp8_e4m3_fnuz": "float8_e4m3fnuz", "__hip_fp8_e5m2_fnuz": "float8_e5m2fnuz",
}  # fmt: skip
_BYTES = {"64": 8, "32": 4, "16": 2}
_SAME = frozenset({"+", "-", "*", "%", "<", "<=", ">", ">=", "==", "!="})
# Nobody means a longer number, and from some thousands of digits on it cannot be turned into text again.
_MOST_DIGITS = 40
_LOGIC = {"&&": "and", "||": "or"}
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d[\d']*)(?:[uUlLzZ]*)")
_PRODUCT = re.compile(r"\w+(?: \* \w+)*")
_REAL = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFlL]?")


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """The value cannot be told from the program; the text says why, in half a sentence."""


@dataclass(frozen=True, slots=True)
class Term:
    """A plan's expression; `simple` ones need no parentheses, `real` ones are floating-point numbers."""

    text: str
    simple: bool = True
    real: bool = False

    @property
    def operand(self) -> str:
        return self.text if self.simple else f"({self.text})"


def safe_name(name: str) -> str:
    """`name`, or one like it where it means something in an expression of a plan."""
    name = name.lstrip("_") or "value"
    return f"{name}_" if keyword.iskeyword(name) or name in FUNCTIONS or name in ("step", "unit") else name


def bytes_of(kind: str) -> int | None:
    """Bytes of an element of a C++ type."""
    dtype = DTYPE_OF.get(" ".join(kind.replace("const", "").split()))
    if dtype is None:
        return None
    return next((size for digits, size in _BYTES.items() if digits in dtype), 1)


class Translator:
    """Translates in one scope: `resolve` answers what a name stands for, or raises Unknown."""

    def __init__(
        self,
        resolve: Callable[[str], Term],
        macros: Mapping[str, Macro],
        functions: Mapping[str, tuple[tuple[str, ...], Node]],
    ) -> None:
        self._resolve = resolve
        self._macros = macros
        self._functions = functions
        self._depth = 0
        self._nesting = 0

    def term(self, node: Node) -> Term:
        """The expression, or Unknown."""
        if self._nesting >= MAX_DEPTH:
            raise Unknown("an expression is nested too deeply")
        self._nesting += 1
        try:
            term = self._term(node)
        finally:
            self._nesting -= 1
        if len(term.text) > MAX_LENGTH:
            raise Unknown("an expression is too long")
        return term

    def _term(self, node: Node) -> Term:
        match node.type:
            case "number_literal":
                return _number(text_of(node))
            case "true" | "false":
                return Term("1" if node.type == "true" else "0")
            case "identifier":
                return self._resolve(text_of(node))
            case "parenthesized_expression" | "cast_expression" | "initializer_list" | "condition_clause":
                return self.term(self._inner(node))
            case "unary_expression":
                return self._unary(node)
            case "binary_expression":
                return self._binary(node)
            case "conditional_expression":
                return self._conditional(node)
            case "sizeof_expression":
                return self._sizeof(node)
            case "call_expression":
                return self._call(node)
            case _:
                raise Unknown(f"'{_short(node)}' is no arithmetic")

    def _inner(self, node: Node) -> Node:
        value = field(node, "value")
        inside = [value] if value is not None else children(node)
        if len(inside) != 1:
            raise Unknown(f"'{_short(node)}' is no arithmetic")
        return inside[0]

    def _unary(self, node: Node) -> Term:
        operand = field(node, "argument")
        sign = try_text(field(node, "operator"))
        if operand is None or sign not in ("-", "+", "!"):
            raise Unknown(f"'{_short(node)}' is no arithmetic")
        term = self.term(operand)
        return Term(f"{'not ' if sign == '!' else sign}{term.operand}", False, term.real)

    def _binary(self, node: Node) -> Term:
        left, right = field(node, "left"), field(node, "right")
        sign = try_text(field(node, "operator"))
        assert left is not None and right is not None
        a, b = self.term(left), self.term(right)
        rounded = _rounded_up(a, b) if sign == "/" else None
        if rounded is not None:
            return rounded
        real = a.real or b.real
        if sign == "*" and _PRODUCT.fullmatch(a.text):
            return Term(f"{a.text} * {b.operand}", False, real)
        if sign in _SAME:
            return Term(f"{a.operand} {sign} {b.operand}", False, real and sign in "+-*")
        if sign == "/":
            return Term(f"{a.operand} {'/' if real else '//'} {b.operand}", False, real)
        if sign in ("<<", ">>"):
            if sign == "<<" and a.text.isdigit() and b.text.isdigit() and int(b.text) < 63:
                return Term(str(int(a.text) << int(b.text)))
            return Term(f"{a.operand} {'*' if sign == '<<' else '//'} 2 ** {b.operand}", False)
        if sign in _LOGIC:
            return Term(f"{a.operand} {_LOGIC[sign]} {b.operand}", False)
        raise Unknown(f"'{_short(node)}' uses '{sign}'")

    def _conditional(self, node: Node) -> Term:
        parts = [field(node, name) for name in ("condition", "consequence", "alternative")]
        test, yes, no = (self.term(part) for part in parts if part is not None)
        return Term(f"{yes.operand} if {test.operand} else {no.operand}", False, yes.real or no.real)

    def _sizeof(self, node: Node) -> Term:
        inside = text_of(node).removeprefix("sizeof").strip().removeprefix("(").removesuffix(")").strip()
        size = 8 if inside.endswith("*") else bytes_of(inside)
        if size is None:
            raise Unknown(f"the size of '{inside}' is not known")
        return Term(str(size))

    def _call(self, node: Node) -> Term:
        name = try_text(field(node, "function")).split("::")[-1].split("<")[0]
        listed = field(node, "arguments")
        arguments = children(listed) if listed is not None else []
        if name in ("min", "max") and len(arguments) == 2:
            return Term(f"{name}({', '.join(self.term(one).text for one in arguments)})")
        if name in ("ceil", "ceilf") and len(arguments) == 1:
            return self._ceiling(arguments[0])
        if name in ("int", "unsigned", "float", "double", "size_t", "static_cast") and len(arguments) == 1:
            return self.term(arguments[0])
        macro = self._macros.get(name)
        if macro is not None and macro.parameters is not None:
            body = parse_expression(macro.body)
            if body is not None:
                return self._inlined(macro.parameters, body, arguments)
        if name in self._functions:
            parameters, body = self._functions[name]
            return self._inlined(parameters, body, arguments)
        raise Unknown(f"what '{_short(node)}' returns cannot be told")

    def _ceiling(self, node: Node) -> Term:
        while node.type in ("parenthesized_expression", "cast_expression"):
            node = self._inner(node)
        if node.type == "binary_expression" and try_text(field(node, "operator")) == "/":
            left, right = field(node, "left"), field(node, "right")
            assert left is not None and right is not None
            parts = [self.term(one).text for one in (left, right)]
            # The floating-point number is there for the division's sake only.
            return Term(f"cdiv({', '.join(one.removesuffix('.0') for one in parts)})")
        return self.term(node)

    def _inlined(self, parameters: tuple[str, ...], body: Node, arguments: list[Node]) -> Term:
        if len(parameters) != len(arguments) or self._depth > 8:
            raise Unknown("a call cannot be followed")
        values = dict(zip(parameters, (self.term(one) for one in arguments), strict=True))

        def resolve(name: str) -> Term:
            return values[name] if name in values else self._resolve(name)

        inner = Translator(resolve, self._macros, self._functions)
        inner._depth = self._depth + 1
        return inner.term(body)


def parse_expression(text: str) -> Node | None:
    """The tree of an expression by itself, where it is one."""
    root = parse_program(f"auto value = {text};".encode())
    if root.has_error:
        return None
    declaration = next(iter(children(root, "declaration")), None)
    init = next(iter(children(declaration, "init_declarator")), None) if declaration is not None else None
    return field(init, "value") if init is not None else None


def _rounded_up(top: Term, bottom: Term) -> Term | None:
    """cdiv, for ``(a + b - 1) / b`` in its usual spellings."""
    b = re.escape(bottom.operand)
    patterns = [rf"(.+) \+ {b}\)? - 1", rf"(.+) \+ \({b} - 1\)", rf"\(?(.+) - 1\)? \+ {b}"]
    if bottom.text.isdigit():
        patterns.append(rf"(.+) \+ {int(bottom.text) - 1}")
    for pattern in patterns:
        if found := re.fullmatch(pattern, top.text):
            inside = found[1]
            if inside.startswith("(") and inside.count("(") > inside.count(")"):
                inside = inside[1:]
            if inside.count("(") == inside.count(")"):
                return Term(f"cdiv({inside}, {bottom.text})")
    return None


def _number(text: str) -> Term:
    if found := _NUMBER.fullmatch(text):
        digits = found[1].replace("'", "")
        if len(digits) > _MOST_DIGITS:
            raise Unknown(f"'{digits[:_MOST_DIGITS]}...' is larger than any size")
        octal = len(digits) > 1 and digits.startswith("0") and digits.isdigit()
        return Term(str(int(digits, 8 if octal else 0)))
    if (found := _REAL.fullmatch(text)) and math.isfinite(float(found[1])):
        return Term(repr(float(found[1])), real=True)
    raise Unknown(f"'{text}' is no decimal number")


def _short(node: Node) -> str:
    words = " ".join(text_of(node).split())
    return words if len(words) <= 40 else f"{words[:37]}..."
