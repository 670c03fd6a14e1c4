"""What the two ends say to each other, and how much of what comes back is believed.

Covered: wrong types, sizes, depths and numbers, characters that steer a terminal, answers about another
kernel. Not covered: a machine that lies about what it measured; whoever names a machine trusts it that far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from kernel_scientist.sandbox.errors import (
    InternalError,
    KernelScientistError,
    SandboxError,
    UnusableEnvironment,
    UsageError,
)
from kernel_scientist.sandbox.inspection import Finding

from ..evaluation import Comparison, Evaluation
from ..kernel import MAX_BYTES
from ..settings import JudgeSettings, Tier
from ..text import clean

__all__ = [
    "Fault",
    "Host",
    "Installed",
    "KernelText",
    "Opened",
    "Request",
    "TargetFacts",
    "exception_of",
    "fault_of",
    "parse_comparison",
    "parse_evaluation",
    "parse_findings",
    "parse_reply",
    "parse_request",
]

_LONGEST_TEXT = 20_000
_MOST_ITEMS = 10_000
_DEEPEST = 12

Model = TypeVar("Model", bound=BaseModel)
Kind = Literal["usage", "environment", "sandbox", "internal"]
Line = Annotated[str, StringConstraints(max_length=2000)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KernelText(_Message):
    """A kernel file; `path` is the name that sentences about it use."""

    source: Annotated[str, StringConstraints(max_length=MAX_BYTES)]
    path: Line | None


class InspectRequest(_Message):
    do: Literal["inspect"] = "inspect"


class TargetRequest(_Message):
    do: Literal["target"] = "target"
    name: str = Field(default="auto", pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    allow_no_sandbox: bool


class OpenRequest(_Message):
    """An assessor for a problem; its seeds are the client's `SeedSequence` after `spawned` children.

    `shown` is the problem's folder on the client's machine, which sentences about its files name.
    """

    do: Literal["open"] = "open"
    assessor: int
    digest: Digest
    name: Line
    shown: Line
    settings: JudgeSettings
    entropy: list[int]
    spawn_key: list[int]
    spawned: int


class PrepareRequest(_Message):
    do: Literal["prepare"] = "prepare"
    assessor: int
    kernel: KernelText


class RefuseRequest(_Message):
    do: Literal["refuse"] = "refuse"
    assessor: int
    kernel: KernelText
    baseline: KernelText
    tier: Tier


class EvaluateRequest(_Message):
    do: Literal["evaluate"] = "evaluate"
    assessor: int
    kernel: KernelText
    baseline: KernelText | None
    tier: Tier


class CompareRequest(_Message):
    do: Literal["compare"] = "compare"
    assessor: int
    a: KernelText
    b: KernelText


Request = (
    InspectRequest
    | TargetRequest
    | OpenRequest
    | PrepareRequest
    | RefuseRequest
    | EvaluateRequest
    | CompareRequest
)

_REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])


def parse_request(message: Mapping[str, Any]) -> Request:
    """The request that a frame holds; pydantic's ValidationError for anything else."""
    return _REQUESTS.validate_python(dict(message))


class Host(_Message):
    """What the other machine's Python says of it, before anything is put there."""

    python: Line
    executable: Line
    system: Line
    machine: Line
    home: Line
    deployed: bool
    missing: Annotated[list[Line], Field(max_length=100)]


class Installed(_Message):
    """The Python of the environment that was made."""

    executable: Line


class TargetFacts(_Message):
    """The target that the other machine has chosen."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    target_class: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    device: Line
    sandbox: Line


class Opened(_Message):
    """Whether the problem could be opened; if not, its files are not there yet."""

    opened: bool


class Fault(_Message):
    """An exception of the other end, for the user of this one."""

    kind: Kind
    message: Annotated[str, StringConstraints(max_length=_LONGEST_TEXT)]


# The nearer class first: a SandboxError is an UnusableEnvironment as well.
_KINDS: tuple[tuple[Kind, type[KernelScientistError]], ...] = (
    ("usage", UsageError),
    ("sandbox", SandboxError),
    ("environment", UnusableEnvironment),
    ("internal", InternalError),
)


def fault_of(error: KernelScientistError, names: Mapping[str, str] | None = None) -> Fault:
    """`error` as a message, with every key of `names` in it replaced by its value."""
    sentence = str(error)
    for there, here in (names or {}).items():
        sentence = sentence.replace(there, here)
    known: list[Kind] = [kind for kind, cls in _KINDS if isinstance(error, cls)]
    kind: Kind = known[0] if known else "internal"
    return Fault(kind=kind, message=sentence[:_LONGEST_TEXT])


def exception_of(fault: Fault, where: str) -> KernelScientistError:
    """The exception that `fault` stands for; a fault of the machine says which machine."""
    cls = dict(_KINDS)[fault.kind]
    return cls(fault.message if fault.kind == "usage" else f"On {where}: {fault.message}")


def parse_reply(model: type[Model], reply: Mapping[str, Any]) -> Model:
    """A reply as `model`, its text printable; ValueError when it is something else."""
    return model.model_validate(_bounded(dict(reply)))


def parse_findings(reply: Mapping[str, Any]) -> list[Finding]:
    """The findings of an inspection; ValueError for anything else."""
    return TypeAdapter(Annotated[list[Finding], Field(max_length=100)]).validate_python(
        _bounded(reply.get("findings"))
    )


_EVALUATION = TypeAdapter(Evaluation)


def parse_evaluation(data: object, *, kernel_key: str, baseline_key: str, tier: str) -> Evaluation:
    """An evaluation of that kernel against that baseline; ValueError for anything else."""
    evaluation = _evaluation(_bounded(data))
    said = (evaluation.kernel_key, evaluation.baseline_key, evaluation.tier)
    if said != (kernel_key, baseline_key, tier):
        raise ValueError("an evaluation of something that was not asked for")
    return evaluation


def parse_comparison(data: object, *, key_a: str, key_b: str) -> Comparison:
    """A comparison of those two kernels; ValueError for anything else."""
    tree = _bounded(data)
    if not isinstance(tree, dict):
        raise ValueError("not a comparison")
    parts = cast("dict[str, Any]", tree)
    a, b = _evaluation(parts.get("a")), _evaluation(parts.get("b"))
    if (a.kernel_key, b.kernel_key) != (key_a, key_b):
        raise ValueError("a comparison of something that was not asked for")
    return _COMPARISON.validate_python({**_open_ended(parts), "a": a, "b": b})


_COMPARISON = TypeAdapter(Comparison)
_INTERVAL = {"value", "low", "high", "level"}


def _evaluation(tree: object) -> Evaluation:
    return _EVALUATION.validate_python(_open_ended(tree))


def _open_ended(tree: Any) -> Any:
    """`tree` with infinity where `Interval.to_dict` wrote ``null``, as JSON has no infinity."""
    if isinstance(tree, dict):
        entries = cast("dict[str, Any]", tree)
        if entries.keys() == _INTERVAL and entries["high"] is None:
            return {**entries, "high": math.inf}
        return {name: _open_ended(value) for name, value in entries.items()}
    if isinstance(tree, list):
        items = cast("list[object]", tree)
        return [_open_ended(item) for item in items]
    return tree


def _bounded(tree: Any, depth: int = 0) -> Any:
    """`tree` with its texts printable; ValueError when it has too much in it, or what JSON does not have."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if isinstance(tree, str):
        return clean(tree, _LONGEST_TEXT)
    if isinstance(tree, dict):
        entries = cast("dict[str, Any]", tree)
        if len(entries) > _MOST_ITEMS:
            raise ValueError("too many entries")
        return {clean(name, 200): _bounded(value, depth + 1) for name, value in entries.items()}
    if isinstance(tree, list):
        items = cast("list[object]", tree)
        if len(items) > _MOST_ITEMS:
            raise ValueError("too many items")
        return [_bounded(item, depth + 1) for item in items]
    if isinstance(tree, float) and not math.isfinite(tree):
        raise ValueError("a number that is not finite")
    return tree
