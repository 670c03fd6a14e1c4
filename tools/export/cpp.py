"""Expressions of plans and problems as C++: the same arithmetic, on the types of parts/arithmetic.h.

An expression of integers becomes an ``Integer``, which turns invalid where Python's arithmetic would raise;
every other one becomes a ``double``. Where branches differ in kind the whole is a ``double``, which holds the
integers that plans use exactly.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..expressions import Expression, Number

__all__ = ["Kind", "Translation", "kind_of", "literal", "translate"]

Kind = Literal["integer", "real"]

_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CALLED: dict[type[ast.operator], str] = {ast.FloorDiv: "floordiv", ast.Mod: "modulo"}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_FUNCTIONS = {"cdiv": "cdiv", "min": "least", "max": "greatest"}


@dataclass(frozen=True, slots=True)
class Translation:
    """C++ text with its kind; `form` says what may stand round it without parentheses."""

    text: str
    kind: Kind
    form: Literal["literal", "atom", "compound"] = "compound"

    @property
    def operand(self) -> str:
        return f"({self.text})" if self.form == "compound" else self.text

    @property
    def integer(self) -> str:
        """The value where an Integer is wanted."""
        if self.kind == "real":
            return f"whole({self.text})"
        return f"Integer({self.text})" if self.form == "literal" else self.text

    @property
    def integer_operand(self) -> str:
        """The same, as a factor of a product."""
        return f"({self.integer})" if self.kind == "integer" and self.form == "compound" else self.integer

    @property
    def real(self) -> str:
        """The value where a double is wanted."""
        if self.kind == "real":
            return self.text
        return f"{self.text}.0" if self.form == "literal" else f"real({self.text})"

    def typed(self, kind: Kind) -> str:
        return self.integer if kind == "integer" else self.real

    @property
    def condition(self) -> str:
        return f"truth({self.integer if self.kind == 'integer' else self.real})"


def kind_of(value: Number) -> Kind:
    return "integer" if isinstance(value, int) else "real"


def literal(value: Number) -> Translation:
    """A number as C++ writes it; negative ones in parentheses."""
    text = repr(value)
    if value < 0:
        number = f"Integer({text})" if isinstance(value, int) else f"({text})"
        return Translation(number, kind_of(value), "atom")
    return Translation(text, kind_of(value), "literal" if isinstance(value, int) else "atom")


def translate(expression: Expression, names: Mapping[str, Translation]) -> Translation:
    """`expression` in C++, its names replaced by what `names` says they are there."""
    return _translate(expression.tree, names)


def _translate(node: ast.expr, names: Mapping[str, Translation]) -> Translation:
    match node:
        case ast.Constant(value=int() | float() as value):
            return literal(value)
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp():
            left, right = _translate(node.left, names), _translate(node.right, names)
            return _binary(node, left, right)
        case ast.UnaryOp():
            return _unary(node.op, _translate(node.operand, names))
        case ast.BoolOp():
            sign = " && " if isinstance(node.op, ast.And) else " || "
            conditions = [_translate(value, names).condition for value in node.values]
            return _from_condition(sign.join(conditions))
        case ast.IfExp():
            test = _translate(node.test, names).condition
            body, other = _translate(node.body, names), _translate(node.orelse, names)
            kind = _joint(body, other)
            return Translation(f"{test} ? {body.typed(kind)} : {other.typed(kind)}", kind)
        case ast.Compare():
            return _compare(node, names)
        case ast.Call(func=ast.Name(id=name)):
            arguments = [_translate(argument, names) for argument in node.args]
            return _call(_FUNCTIONS[name], *arguments)
        case _:
            raise AssertionError(ast.dump(node))


def _joint(*parts: Translation) -> Kind:
    return "integer" if all(part.kind == "integer" for part in parts) else "real"


def _operands(left: Translation, right: Translation) -> tuple[str, str]:
    """Both sides of an operator, converted where the kinds differ, or where both are literals."""
    if _joint(left, right) == "real":
        return _real_operand(left), _real_operand(right)
    if left.form == right.form == "literal":
        return left.integer, right.operand
    return left.operand, right.operand


def _real_operand(part: Translation) -> str:
    return part.operand if part.kind == "real" else part.real


def _binary(node: ast.BinOp, left: Translation, right: Translation) -> Translation:
    operator = type(node.op)
    if operator in _CALLED:
        return _call(_CALLED[operator], left, right)
    if operator is ast.Div:
        # Python's quotient of two integers is a float, and dividing by zero an error.
        return Translation(f"quotient({left.real}, {right.real})", "real", "atom")
    if operator is ast.Pow:
        return _power(node.right, left, right)
    a, b = _operands(left, right)
    return Translation(f"{a} {_ARITHMETIC[operator]} {b}", _joint(left, right))


def _power(exponent: ast.expr, left: Translation, right: Translation) -> Translation:
    """An integer only where the exponent is a literal: any other may turn out negative."""
    if left.kind == "integer" and isinstance(exponent, ast.Constant) and right.kind == "integer":
        return Translation(f"power({left.integer}, {right.text})", "integer", "atom")
    return Translation(f"power({left.real}, {right.real})", "real", "atom")


def _unary(sign: ast.unaryop, operand: Translation) -> Translation:
    if isinstance(sign, ast.Not):
        return _from_condition(f"!{operand.condition}")
    if isinstance(sign, ast.UAdd):
        return operand
    return Translation(
        f"-{Translation(operand.typed(operand.kind), operand.kind, operand.form).operand}", operand.kind
    )


def _from_condition(text: str) -> Translation:
    return Translation(f"Integer({text})", "integer", "atom")


def _compare(node: ast.Compare, names: Mapping[str, Translation]) -> Translation:
    operands = [_translate(item, names) for item in (node.left, *node.comparators)]
    parts: list[str] = []
    for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
        a, b = _operands(left, right)
        parts.append(f"{a} {_COMPARED[type(operator)]} {b}")
    return _from_condition(" && ".join(parts))


def _call(function: str, *arguments: Translation) -> Translation:
    kind = _joint(*arguments)
    return Translation(f"{function}({', '.join(one.typed(kind) for one in arguments)})", kind, "atom")
