"""The launch plan that opens a kernel file: its tables as values, and what a plan may say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, ValidationError

from .dtypes import element_type
from .errors import ExpressionError, PlanError, nearest
from .expressions import FUNCTIONS, Expression, Number
from .text import excerpt
from .toml_text import TomlError, line_of, parse_toml
from .validation import ConstantField, ExpressionValue, NumberValue, first_fault

__all__ = [
    "RESERVED_NAMES",
    "ConstantValue",
    "Launch",
    "Plan",
    "Scratch",
    "is_constant_name",
    "parse_plan",
    "toml_literal",
]

ConstantValue = int | float | str

MAX_PLAN_CHARACTERS = 50_000

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KERNEL = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*\s*(<[\w\s,:<>()+\-*/%&|^!=.'?]*>)?", re.ASCII)
# A macro of one of these names would change the code round the kernel instead of the kernel.
RESERVED_NAMES = frozenset(
    word
    for line in (
        "alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const",
        "consteval constexpr constinit continue decltype default delete do double else enum explicit export",
        "extern false final float for friend goto if inline int long mutable namespace new noexcept not",
        "nullptr operator or override private protected public register requires return short signed sizeof",
        "static struct switch template this throw true try typedef typeid typename union unsigned using",
        "virtual void volatile wchar_t while xor static_assert static_cast reinterpret_cast const_cast",
        "threadIdx blockIdx blockDim gridDim warpSize dim3 half step",
    )
    for word in line.split()
) | frozenset(FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A device buffer that lives for one run of the plan; `size` is in elements, lines are in the file."""

    name: str
    dtype: str
    size: Expression
    init: Number | None
    line: int
    key_lines: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Launch:
    """One ``[[launch]]`` as written. `grid` and `block` have one to three expressions.

    `line` is that of the table in the kernel file, `key_lines` those of its keys.
    """

    kernel: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    args: tuple[Expression, ...]
    lds: Expression
    when: Expression | None
    repeat: Expression
    line: int
    key_lines: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Plan:
    """A parsed plan. A string constant is an expression over the shape and the constants above it.

    `tune` maps a constant to the values worth trying, `where` are the expressions over constants that
    must hold among them. `constant_lines` and `tune_lines` are lines in the kernel file.
    """

    constants: Mapping[str, ConstantValue]
    tune: Mapping[str, tuple[ConstantValue, ...]]
    where: tuple[str, ...]
    scratch: tuple[Scratch, ...]
    launches: tuple[Launch, ...]
    constant_lines: Mapping[str, int]
    tune_lines: Mapping[str, int] = field(default_factory=dict[str, int])

    def is_allowed(self, constants: Mapping[str, ConstantValue]) -> bool:
        """Whether the plan with these constants changed satisfies every `where`.

        A `where` over a constant that depends on the shape cannot be decided here and counts as held.
        """
        return self.broken_rule(constants) is None

    def broken_rule(self, constants: Mapping[str, ConstantValue]) -> str | None:
        """The first `where` that these constants break, which one without a value counts as."""
        fault = self.rule_fault(constants)
        return fault[0] if fault is not None else None

    def rule_fault(self, constants: Mapping[str, ConstantValue]) -> tuple[str, str] | None:
        """The rule that `broken_rule` gives, and why it does not hold where it has no value."""
        values: dict[str, Number] = {}
        for name, value in {**self.constants, **constants}.items():
            try:
                values[name] = Expression.parse(value).evaluate(values)
            except ExpressionError:
                continue
        for text in self.where:
            rule = Expression.parse(text)
            if rule.names <= values.keys():
                try:
                    if not rule.evaluate(values):
                        return text, ""
                except ExpressionError as error:
                    return text, str(error)
        return None


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str | int | float) else value


_Extents = Annotated[list[ExpressionValue], Field(min_length=1, max_length=3), BeforeValidator(_as_list)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class _ScratchTable(_Table):
    name: StrictStr
    dtype: StrictStr
    size: ExpressionValue
    init: NumberValue | None = None


class _LaunchTable(_Table):
    kernel: StrictStr
    grid: _Extents
    block: _Extents
    args: list[ExpressionValue] = Field(default=[], max_length=64)
    lds: ExpressionValue = Expression.parse(0)
    when: ExpressionValue | None = None
    repeat: ExpressionValue = Expression.parse(1)


class _PlanTable(_Table):
    constants: dict[str, ConstantField] = Field(default={}, max_length=100)
    tune: dict[str, list[ConstantField]] = {}
    scratch: list[_ScratchTable] = Field(default=[], max_length=32)
    launch: list[_LaunchTable] = Field(min_length=1, max_length=64)


def is_constant_name(name: str) -> bool:
    """Whether a constant may be called `name`."""
    return (
        bool(_IDENTIFIER.fullmatch(name))
        and name not in RESERVED_NAMES
        and not name.lower().startswith("ks_")
    )


def toml_literal(value: ConstantValue) -> str:
    """`value` as TOML writes it."""
    # JSON's strings are TOML basic strings as long as nothing outside ASCII is left to escape.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def parse_plan(text: str, first_line: int) -> Plan:
    """Parse the plan `text` whose first line is line `first_line` of the kernel file; PlanError if wrong."""
    if len(text) > MAX_PLAN_CHARACTERS:
        message = f"the plan has {len(text)} characters; it may have {MAX_PLAN_CHARACTERS}"
        raise PlanError(message, line=first_line)
    try:
        raw = parse_toml(text)
    except TomlError as error:
        raise PlanError(f"the plan is not TOML: {error}", line=first_line + error.line - 1) from None
    return _PlanReader(text, first_line).read(raw)


class _PlanReader:
    """Turns the TOML tables into a Plan; knows the line of everything it refuses."""

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._first_line = first_line

    def read(self, raw: dict[str, Any]) -> Plan:
        tune: Any = raw.get("tune")
        # The one key of [tune] that is not a constant's name.
        where: Any = cast("dict[str, Any]", tune).pop("where", []) if isinstance(tune, dict) else []
        try:
            table = _PlanTable.model_validate(raw)
        except ValidationError as error:
            path, message = first_fault(error, _PlanTable)
            raise self._error(message, *path) from None
        constants = table.constants
        for name in constants:
            self._check_constant(name, constants)
        plan = Plan(
            constants=constants,
            tune={name: self._values(name, values, constants) for name, values in table.tune.items()},
            where=self._rules(where, constants),
            scratch=tuple(self._scratch(index, item) for index, item in enumerate(table.scratch)),
            launches=tuple(self._launch(index, item) for index, item in enumerate(table.launch)),
            constant_lines={name: self._line("constants", name) for name in constants},
            tune_lines={name: self._line("tune", name) for name in table.tune},
        )
        names = [item.name for item in plan.scratch]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self._error(f"two scratch buffers are called '{name}'", "scratch", index, "name")
        broken = plan.rule_fault({})
        if broken is not None:
            rule, why = broken
            text = f"the constants break the plan's own rule '{excerpt(rule)}'"
            raise self._error(f"{text}: {why}" if why else text, "tune", "where")
        return plan

    def _line(self, *path: str | int) -> int:
        return self._first_line + (line_of(self._text, path) or 1) - 1

    def _key_lines(self, table: _Table, *path: str | int) -> dict[str, int]:
        return {key: self._line(*path, key) for key in sorted(table.model_fields_set)}

    def _error(self, message: str, *path: str | int) -> PlanError:
        return PlanError(message, line=self._line(*path))

    def _expression(self, value: str | int | float, *path: str | int) -> Expression:
        try:
            return Expression.parse(value)
        except ExpressionError as error:
            raise self._error(str(error), *path) from None

    def _check_constant(self, name: str, constants: Mapping[str, ConstantValue]) -> None:
        path = ("constants", name)
        if not is_constant_name(name):
            raise self._error(f"'{excerpt(name)}' cannot be the name of a constant", *path)
        used = self._expression(constants[name], *path).names
        above = list(constants)[: list(constants).index(name)]
        for other in sorted(used & constants.keys()):
            if other not in above:
                raise self._error(f"constant '{name}' uses '{other}', which must stand above it", *path)

    def _values(
        self, name: str, values: list[Any], constants: Mapping[str, ConstantValue]
    ) -> tuple[ConstantValue, ...]:
        if name not in constants:
            raise self._error(
                f"[tune] names '{excerpt(name)}', not a constant; {nearest(name, constants)}", "tune", name
            )
        if not values:
            raise self._error(f"[tune] lists no value for '{name}'", "tune", name)
        return tuple(dict.fromkeys(values))

    def _rules(self, where: Any, constants: Mapping[str, ConstantValue]) -> tuple[str, ...]:
        rules: list[Any] = [*where] if isinstance(where, list) else [None]
        for rule in rules:
            if not isinstance(rule, str):
                message = '\'where\' is a list of expressions in quotes; write where = ["...", "..."]'
                raise self._error(message, "tune", "where")
            unknown = sorted(self._expression(rule, "tune", "where").names - constants.keys())
            if unknown:
                message = f"'where' may only use constants, not '{excerpt(unknown[0])}'"
                raise self._error(f"{message}; {nearest(unknown[0], constants)}", "tune", "where")
        return tuple(rules)

    def _scratch(self, index: int, table: _ScratchTable) -> Scratch:
        path = ("scratch", index)
        if not _IDENTIFIER.fullmatch(table.name):
            raise self._error(f"'{excerpt(table.name)}' cannot be the name of a buffer", *path, "name")
        try:
            element_type(table.dtype)
        except ValueError as error:
            raise self._error(str(error), *path, "dtype") from None
        lines = self._key_lines(table, *path)
        return Scratch(table.name, table.dtype, table.size, table.init, self._line(*path), lines)

    def _launch(self, index: int, table: _LaunchTable) -> Launch:
        path = ("launch", index)
        kernel = " ".join(table.kernel.split())
        if len(kernel) > 400 or not _KERNEL.fullmatch(kernel) or "//" in kernel or "/*" in kernel:
            message = f"'{excerpt(kernel)}' is not the name of a kernel, such as scale or scale<TILE>"
            raise self._error(message, *path, "kernel")
        return Launch(
            kernel=kernel,
            grid=tuple(table.grid),
            block=tuple(table.block),
            args=tuple(table.args),
            lds=table.lds,
            when=table.when,
            repeat=table.repeat,
            line=self._line(*path),
            key_lines=self._key_lines(table, *path),
        )
