"""The JSON schema of an answer, in the strict form that services with structured output want."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from .protocol import items_of

__all__ = ["strict_schema"]

# Bounds are checked when the answer is read; not every service knows them in a schema.
_BOUNDS = frozenset({"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"})
_LEFT_OUT = _BOUNDS | {"title", "default", "description"}


def strict_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The ``response_format`` for answers that are a `form`: every key is required, no other is allowed."""
    schema = _strict(form.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": form.__name__, "strict": True, "schema": schema}}


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(one) for one in items_of(cast("object", node))]
    if not isinstance(node, dict):
        return node
    values = cast("dict[str, Any]", node)
    # Below "properties" and "$defs" the keys are names of the form's own.
    kept = {
        key: {name: _strict(one) for name, one in value.items()}
        if key in ("properties", "$defs")
        else _strict(value)
        for key, value in values.items()
        if key not in _LEFT_OUT
    }
    if kept.get("type") == "object" and "properties" in kept:
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept
