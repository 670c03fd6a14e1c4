"""Field types that plans and problems share, and pydantic's first complaint in one sentence."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationError
from pydantic.fields import FieldInfo

from .errors import nearest
from .expressions import Expression
from .text import excerpt

__all__ = ["ConstantField", "ExpressionValue", "NumberValue", "first_fault"]


def _expression(value: object) -> Expression:
    return Expression.parse(_constant(value))


def _constant(value: object) -> int | float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a number, or an expression in quotes")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"write a finite number, not {value}")
    Expression.parse(value)
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("write a number")
    return value


ExpressionValue = Annotated[Expression, BeforeValidator(_expression)]
ConstantField = Annotated[int | float | str, PlainValidator(_constant)]
NumberValue = Annotated[int | float, PlainValidator(_number)]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation mentions."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in get_args(annotation) for model in _models(part)]


def _model_at(model: type[BaseModel], path: tuple[str | int, ...]) -> type[BaseModel]:
    """The model that holds the last part of `path`."""
    for part in path[:-1]:
        field = model.model_fields.get(str(part))
        inner = _models(field.annotation) if field else []
        model = inner[0] if inner else model
    return model


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def first_fault(error: ValidationError, model: type[BaseModel]) -> tuple[tuple[str | int, ...], str]:
    """Where the first fault is (a path of keys and indices) and what it is, as half a sentence."""
    faults = error.errors(include_url=False)
    fault = next((item for item in faults if item["type"] == "extra_forbidden"), faults[0])
    # A bad dictionary key adds the part '[key]' to the place.
    path = tuple(part for part in fault["loc"] if part != "[key]")
    key = str(path[-1]) if path else ""
    match fault["type"]:
        case "extra_forbidden":
            return path, f"unknown key '{excerpt(key)}'; {nearest(key, _keys(_model_at(model, path)))}"
        case "missing":
            owner = path[:-1]
            inside = f" in '{_dotted(owner)}'" if owner else ""
            return owner, f"the key '{key}' is missing{inside}; {_how_to_write(model, path)}"
        case _:
            return path, f"'{_dotted(path)}': {_in_words(fault, model, path)}"


def _in_words(fault: Mapping[str, Any], model: type[BaseModel], path: tuple[str | int, ...]) -> str:
    """pydantic's complaint as a person would put it who knows TOML and not Python."""
    limits: Mapping[str, Any] = fault.get("ctx", {})
    match str(fault["type"]):
        case "list_type":
            field = _field_at(model, path)
            plural = field is None or not _models(field.annotation)
            return f"write a list, {excerpt(str(path[-1]))} = [...]" if plural else _how_to_write(model, path)
        case "dict_type" | "model_type" | "model_attributes_type":
            return _table_at(path)
        case "string_type":
            return "write a text in quotes"
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return "write a whole number"
        case "too_short":
            return f"is empty; {_how_to_write(model, path)}"
        case "too_long":
            return f"give at most {limits['max_length']}, not {limits['actual_length']}"
        case "greater_than_equal":
            return f"must be at least {limits['ge']}"
        case "less_than_equal":
            return f"must be at most {limits['le']}"
        case "literal_error":
            return f"must be {limits['expected']}"
        case _:
            text = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
            return text[:1].lower() + text[1:]


def _how_to_write(model: type[BaseModel], path: tuple[str | int, ...]) -> str:
    """What stands at `path` in a right file."""
    key = excerpt(str(path[-1])) if path else ""
    field = _field_at(model, path)
    if field is None:
        return f"write {key} = ..."
    models = _models(field.annotation)
    if get_origin(field.annotation) is list:
        return f"write it as [[{key}]]" if models else f"write a list, {key} = [...]"
    return _table_at(path) if models or get_origin(field.annotation) is dict else f"write {key} = ..."


def _table_at(path: tuple[str | int, ...]) -> str:
    key = _dotted(path[-1:])
    return f"write a table, [{key}]" if len(path) == 1 else f"write a table, {key} = {{ ... }}"


def _field_at(model: type[BaseModel], path: tuple[str | int, ...]) -> FieldInfo | None:
    return _model_at(model, path).model_fields.get(str(path[-1])) if path else None


def _dotted(path: tuple[str | int, ...]) -> str:
    """`path` as a person counts: launch.0.grid is the grid of launch 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else excerpt(part) for part in path)
