"""problem.toml at the edge: what its keys are, and errors that name the line and the nearest key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from kernel_scientist.sandbox.files import read_regular

from .dtypes import element_type
from .errors import ProblemError, nearest
from .expressions import FUNCTIONS, Expression
from .text import excerpt
from .toml_text import TomlError, line_of, parse_toml
from .validation import ExpressionValue, first_fault

__all__ = ["BufferTable", "ProblemFile", "RangeTable", "TargetClass", "read_problem_file", "shape_fault"]

TargetClass = Literal["cpu", "mi300", "recorded"]
Place = tuple[str, ...]
Shape = dict[str, Annotated[StrictInt, Field(ge=1)]]

_MOST_BYTES = 2**20

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def _is_name(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text) or text in FUNCTIONS or text == "step":
        raise ValueError(f"'{excerpt(text)}' cannot be a name; use letters, digits and _, a letter first")
    return text


def _is_dtype(text: str) -> str:
    return element_type(text).name


def _is_kernel_file(text: str) -> str:
    if Path(text).name != text or not text.endswith(".hip"):
        raise ValueError(f"'{excerpt(text)}' is not the name of a .hip file in the problem's folder")
    return text


_Name = Annotated[StrictStr, AfterValidator(_is_name)]
_Dtype = Annotated[StrictStr, AfterValidator(_is_dtype)]
_ZERO = Expression.parse(0)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class BufferTable(_Table):
    dtype: _Dtype
    shape: list[ExpressionValue] = Field(min_length=1, max_length=8)
    order: Literal["C", "F"] = "C"


class ScalarTable(_Table):
    dtype: _Dtype
    value: ExpressionValue


class RangeTable(_Table):
    min: StrictInt = Field(ge=1)
    max: StrictInt = Field(le=2**31 - 1)
    multiple_of: StrictInt = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.max // self.multiple_of < -(-self.min // self.multiple_of):
            raise ValueError(f"no multiple of {self.multiple_of} lies between {self.min} and {self.max}")
        return self


class ToleranceTable(_Table):
    rtol: ExpressionValue = _ZERO
    atol: ExpressionValue = _ZERO
    magnitude: ExpressionValue = _ZERO


class SpeedOfLightTable(_Table):
    flops: ExpressionValue
    bytes: ExpressionValue
    arithmetic: _Dtype


class ShapesTable(_Table):
    tests: list[Shape] = Field(min_length=1)
    benchmarks: list[Shape] = Field(min_length=1)


class ProblemFile(_Table):
    """The keys of problem.toml."""

    title: StrictStr
    description: StrictStr
    kernels: list[Annotated[StrictStr, AfterValidator(_is_kernel_file)]] = Field(min_length=1)
    distributions: list[_Name] = Field(min_length=1)
    inputs: dict[_Name, BufferTable]
    outputs: dict[_Name, BufferTable] = Field(min_length=1)
    scalars: dict[_Name, ScalarTable] = {}
    domain: dict[_Name, RangeTable] = Field(min_length=1)
    tolerance: ToleranceTable
    speed_of_light: SpeedOfLightTable
    shapes: dict[TargetClass, ShapesTable] = Field(min_length=1)


class Bounds(Protocol):
    """What a dimension's extent must keep to."""

    @property
    def min(self) -> int: ...
    @property
    def max(self) -> int: ...
    @property
    def multiple_of(self) -> int: ...


def read_problem_file(path: Path) -> tuple[ProblemFile, str]:
    """Read and check problem.toml by itself: its tables and its text; ProblemError with the line."""
    try:
        text = read_regular(path, _MOST_BYTES).decode()
    except OSError as error:
        raise ProblemError(f"cannot be read ({error.strerror}); give a readable file", path=path) from None
    except UnicodeDecodeError:
        raise ProblemError("is not UTF-8; save the file as UTF-8", path=path) from None
    try:
        table = ProblemFile.model_validate(parse_toml(text))
    except TomlError as error:
        raise ProblemError(f"is not TOML: {error}", path=path, line=error.line) from None
    except ValidationError as error:
        place, message = first_fault(error, ProblemFile)
        raise ProblemError(message, path=path, line=line_of(text, place)) from None
    fault = _first_contradiction(table)
    if fault is not None:
        raise ProblemError(fault[1], path=path, line=line_of(text, fault[0]))
    return table, text


def _first_contradiction(table: ProblemFile) -> tuple[Place, str] | None:
    """The first thing that two keys say against each other: where, and half a sentence."""
    groups: dict[str, Mapping[str, object]] = {
        "inputs": table.inputs,
        "outputs": table.outputs,
        "scalars": table.scalars,
        "domain": table.domain,
    }
    owners: dict[str, str] = {}
    for owner, group in groups.items():
        for name in group:
            if name in owners:
                return (owner, name), f"'{name}' is in [{owners[name]}] too; rename one of them"
            owners[name] = owner
    for place, expression in _expressions(table):
        for name in sorted(expression.names - table.domain.keys()):
            unknown = f"'{expression.shown}' uses '{excerpt(name)}', not a dimension"
            return place, f"{unknown}; {nearest(name, table.domain)}"
    for place, shape in _shapes(table):
        fault = shape_fault(shape, table.domain)
        if fault is not None:
            return place, fault
    return None


def _expressions(table: ProblemFile) -> Iterator[tuple[Place, Expression]]:
    for owner, buffers in (("inputs", table.inputs), ("outputs", table.outputs)):
        for name, buffer in buffers.items():
            yield from (((owner, name), extent) for extent in buffer.shape)
    for name, scalar in table.scalars.items():
        yield ("scalars", name), scalar.value
    tolerance = table.tolerance
    yield from ((("tolerance", name), getattr(tolerance, name)) for name in ToleranceTable.model_fields)
    yield ("speed_of_light", "flops"), table.speed_of_light.flops
    yield ("speed_of_light", "bytes"), table.speed_of_light.bytes


def _shapes(table: ProblemFile) -> Iterator[tuple[Place, Mapping[str, int]]]:
    for target, shapes in table.shapes.items():
        yield from ((("shapes", target, "tests"), shape) for shape in shapes.tests)
        yield from ((("shapes", target, "benchmarks"), shape) for shape in shapes.benchmarks)


def shape_fault(shape: Mapping[str, int], domain: Mapping[str, Bounds]) -> str | None:
    """Why `shape` is outside `domain`, or ``None``; only what a kernel could not know is a fault."""
    for name in domain:
        if name not in shape:
            return f"shape {dict(shape)} lacks the dimension '{name}'"
    for name, extent in shape.items():
        if name not in domain:
            return f"shape {dict(shape)} has '{excerpt(name)}', not a dimension; {nearest(name, domain)}"
        bounds = domain[name]
        if not bounds.min <= extent <= bounds.max:
            return f"{name} = {extent} is outside its domain of {bounds.min} to {bounds.max}"
        if extent % bounds.multiple_of:
            return f"{name} = {extent} is not a multiple of {bounds.multiple_of}, as its domain asks"
    return None
