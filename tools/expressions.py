"""Arithmetic in plans and problems: parsed into a checked tree and walked, never handed to ``eval``.

Allowed: integers and decimals, names, ``+ - * / // % **``, comparisons, ``and or not``,
``A if C else B``, ``cdiv(a, b)`` (division rounded up), ``min``, ``max``. Comparisons and
``and or not`` give 0 or 1; ``/`` always gives a float. Text length, nesting and the size of every
intermediate value are bounded.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .errors import ExpressionError, nearest
from .text import excerpt

__all__ = ["FUNCTIONS", "MAX_DEPTH", "MAX_LENGTH", "Expression", "Number"]

Number = int | float

MAX_LENGTH = 1000
MAX_NODES = 300
MAX_DEPTH = 40
MAX_INTEGER = 2**63 - 1

# Python also reads "1if" as two words, with a warning on stderr; here a number must end where it ends.
_NUMBER_LIKE = re.compile(r"(?<!\w)\.?\d[\w.]*", re.ASCII)
_NUMBER = re.compile(r"\.?[\d_]+(\.[\d_]*)?([eE]\d*)?", re.ASCII)


def _cdiv(a: Number, b: Number) -> Number:
    return -(-a // b)


def _power(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        # Refused before it is computed: 9 ** 9 ** 9 would never come back.
        if abs(a) > 1 and b * math.log2(abs(a)) > 63:
            raise ExpressionError("is too large")
        return int(a**b)
    return float(a) ** float(b) if a >= 0 else math.nan


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: a,
    ast.Not: lambda a: int(not a),
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
FUNCTIONS: dict[str, tuple[int, Callable[..., Number]]] = {
    "cdiv": (2, _cdiv),
    "min": (2, min),
    "max": (2, max),
}


@dataclass(frozen=True, slots=True)
class Expression:
    """One parsed expression; equal when the text is. `names` are the names it reads."""

    text: str
    names: frozenset[str] = field(compare=False)
    tree: ast.expr = field(compare=False, repr=False)

    @property
    def shown(self) -> str:
        """The text as a message quotes it: short, on one line."""
        return excerpt(self.text)

    @classmethod
    def parse(cls, text: str | int | float) -> Expression:
        """Parse and check `text`; ExpressionError says what is not arithmetic in it."""
        source = text if isinstance(text, str) else repr(text)
        if len(source) > MAX_LENGTH:
            raise ExpressionError(f"an expression may have {MAX_LENGTH} characters, not {len(source)}")
        shown = excerpt(source)
        if not source.isascii():
            raise ExpressionError(f"'{shown}' has characters that are not ASCII")
        # Python would take what follows a "#" for a comment, and lines within parentheses for one.
        if "#" in source or not source.replace("\t", " ").isprintable():
            raise ExpressionError(f"'{shown}' must be arithmetic on one line, without '#' and controls")
        for found in _NUMBER_LIKE.finditer(source):
            if not _NUMBER.fullmatch(found[0]):
                raise ExpressionError(f"'{shown}': '{excerpt(found[0])}' is not a decimal number")
        try:
            tree = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ExpressionError(f"'{shown}' cannot be parsed as arithmetic") from None
        names: set[str] = set()
        _check(tree, shown, names)
        return cls(source, frozenset(names), tree)

    def evaluate(self, values: Mapping[str, Number]) -> Number:
        """The value for these names; ExpressionError for an unknown name or no finite value."""
        return _evaluate(self.tree, self.shown, values)

    def evaluate_integer(self, values: Mapping[str, Number]) -> int:
        """As `evaluate`, and an ExpressionError when the value is not an integer."""
        value = self.evaluate(values)
        if isinstance(value, int):
            return value
        raise ExpressionError(f"'{self.shown}' is {value!r}, not an integer; use // or cdiv")

    def name(self) -> str | None:
        """The name, when the expression is nothing but a name."""
        return self.tree.id if isinstance(self.tree, ast.Name) else None


def _check(tree: ast.expr, text: str, names: set[str]) -> None:
    """Walk without recursion, so that a deep tree is refused rather than a crash."""
    pending: list[tuple[ast.expr, int]] = [(tree, 1)]
    count = 0
    while pending:
        node, depth = pending.pop()
        count += 1
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise ExpressionError(f"'{text}' is too long or too deeply nested")
        if isinstance(node, ast.Name):
            names.add(node.id)
        pending.extend((child, depth + 1) for child in _operands(node, text))


def _operands(node: ast.expr, text: str) -> Sequence[ast.expr]:
    match node:
        case ast.Constant(value=bool() | None):
            pass
        case ast.Constant(value=int() | float()):
            return ()
        case ast.Name(id=name) if name not in FUNCTIONS:
            return ()
        case ast.BinOp(op=operator) if type(operator) in _BINARY:
            return (node.left, node.right)
        case ast.UnaryOp(op=sign) if type(sign) in _UNARY:
            return (node.operand,)
        case ast.BoolOp():
            return node.values
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            return (node.left, *node.comparators)
        case ast.IfExp():
            return (node.test, node.body, node.orelse)
        case ast.Call():
            return _call_operands(node, text)
        case _:
            pass
    fragment = ast.unparse(node)[:40]
    raise ExpressionError(f"'{text}' is not arithmetic: '{fragment}' is not allowed")


def _call_operands(node: ast.Call, text: str) -> Sequence[ast.expr]:
    name = ast.unparse(node.func)[:40]
    if not isinstance(node.func, ast.Name) or name not in FUNCTIONS:
        raise ExpressionError(f"'{text}' calls '{name}'; only cdiv, min and max can be called")
    least, _ = FUNCTIONS[name]
    count = len(node.args)
    starred = any(isinstance(arg, ast.Starred) for arg in node.args)
    if node.keywords or starred or count < least or (name == "cdiv" and count != least):
        expected = "two" if name == "cdiv" else "two or more"
        raise ExpressionError(f"'{text}': {name} takes {expected} numbers")
    return node.args


def _evaluate(node: ast.expr, text: str, values: Mapping[str, Number]) -> Number:
    def walk(child: ast.expr) -> Number:
        return _evaluate(child, text, values)

    match node:
        case ast.Constant(value=int() | float() as value):
            return _bounded(value, text)
        case ast.Name(id=name):
            if name not in values:
                unknown = f"'{text}' uses the unknown name '{excerpt(name)}'"
                raise ExpressionError(f"{unknown}; {nearest(name, values)}")
            return values[name]
        case ast.BinOp():
            operation = _BINARY[type(node.op)]
            return _apply(operation, (walk(node.left), walk(node.right)), text)
        case ast.UnaryOp():
            return _UNARY[type(node.op)](walk(node.operand))
        case ast.BoolOp(op=ast.And()):
            return int(all(walk(child) for child in node.values))
        case ast.BoolOp():
            return int(any(walk(child) for child in node.values))
        case ast.IfExp():
            return walk(node.body) if walk(node.test) else walk(node.orelse)
        case ast.Compare():
            return _chain(node, walk)
        case ast.Call(func=ast.Name(id=name)):
            return _apply(FUNCTIONS[name][1], tuple(walk(arg) for arg in node.args), text)
        case _:
            raise AssertionError(f"unchecked node in '{text}'")


def _chain(node: ast.Compare, walk: Callable[[ast.expr], Number]) -> int:
    left = walk(node.left)
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = walk(comparator)
        if not _COMPARE[type(operator)](left, right):
            return 0
        left = right
    return 1


def _apply(operation: Callable[..., Number], operands: Sequence[Number], text: str) -> Number:
    try:
        return _bounded(operation(*operands), text)
    except ZeroDivisionError:
        raise ExpressionError(f"'{text}' divides by zero") from None
    except OverflowError:
        raise ExpressionError(f"'{text}' is too large") from None
    except ExpressionError as error:
        raise ExpressionError(f"'{text}' {error}" if str(error) == "is too large" else str(error)) from None


def _bounded(value: Number, text: str) -> Number:
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ExpressionError(f"'{text}' is too large")
        return value
    if not math.isfinite(value):
        raise ExpressionError(f"'{text}' has no finite value")
    return value
