"""Expressions of problem.toml: one without a value is the problem's fault, and said with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .errors import ExpressionError, ProblemError
from .expressions import Expression, Number

__all__ = ["Formula"]


@dataclass(frozen=True, slots=True)
class Formula(Expression):
    """An expression over the dimensions. `what` names it: "shape of 'x'"; `path` and `line` are its place."""

    what: str = field(compare=False)
    path: Path = field(compare=False)
    line: int | None = field(compare=False)

    @classmethod
    def at(cls, expression: Expression, what: str, path: Path, line: int | None) -> Formula:
        return cls(expression.text, expression.names, expression.tree, what, path, line)

    def evaluate(self, values: Mapping[str, Number]) -> Number:
        """The value for these dimensions; ProblemError where there is none."""
        try:
            return Expression.evaluate(self, values)
        except ExpressionError as error:
            raise self.fault(str(error), values) from None

    def evaluate_integer(self, values: Mapping[str, Number]) -> int:
        """As `evaluate`, and a ProblemError when the value is not an integer."""
        try:
            return Expression.evaluate_integer(self, values)
        except ExpressionError as error:
            raise self.fault(str(error), values) from None

    def fault(self, message: str, values: Mapping[str, Number]) -> ProblemError:
        """The error to raise about this formula for these dimensions."""
        shape = ", ".join(f"{name} = {values[name]}" for name in sorted(self.names & values.keys()))
        where = f" for {shape}" if shape else ""
        return ProblemError(f"{self.what}: {message}{where}", path=self.path, line=self.line)
