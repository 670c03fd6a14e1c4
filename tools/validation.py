"""Field types that plans and problems share, and pydantic's first complaint in one sentence."""

from __future__ import annotations

import types
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationError

from .errors import nearest
from .expressions import Expression

__all__ = ["ConstantField", "ExpressionValue", "NumberValue", "first_fault"]


def _expression(value: object) -> Expression:
    return Expression.parse(_constant(value))


def _constant(value: object) -> int | float | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a number, or an expression in quotes")
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
    faults = error.errors(include_url=False, include_context=False)
    fault = next((item for item in faults if item["type"] == "extra_forbidden"), faults[0])
    # A bad dictionary key adds the part '[key]' to the place.
    path = tuple(part for part in fault["loc"] if part != "[key]")
    key = str(path[-1]) if path else ""
    match fault["type"]:
        case "extra_forbidden":
            return path, f"unknown key '{key}'; {nearest(key, _keys(_model_at(model, path)))}"
        case "missing":
            owner = path[:-1]
            inside = f" in '{_dotted(owner)}'" if owner else ""
            return owner, f"the key '{key}' is missing{inside}"
        case _:
            text = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
            return path, f"'{_dotted(path)}': {text[:1].lower() + text[1:]}"


def _dotted(path: tuple[str | int, ...]) -> str:
    """`path` as a person counts: launch.0.grid is the grid of launch 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
