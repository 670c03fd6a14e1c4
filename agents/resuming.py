"""Going on with a recorded run: what it needs, and whether all is as it was."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.problem import RECORDED

from .config import AgentModel, Config, Limits, ModelsConfig, Price, load_config
from .models.registry import HIDDEN
from .run import BASELINE_ID, Run, RunInfo
from .telemetry.config import SpansConfig

if TYPE_CHECKING:
    from .past import Past
    from .setup import Setup

__all__ = [
    "config_of",
    "differences",
    "is_finished",
    "kernel_of",
    "problem_of",
    "require_room",
    "require_same",
]

_AGENTS = tuple(name for name, one in ModelsConfig.model_fields.items() if one.annotation is AgentModel)


def config_of(
    run: Run,
    *,
    generations: int | None = None,
    limits: Limits | None = None,
    prompts: Path | None = None,
    otel: SpansConfig | None = None,
    learn: bool | None = None,
) -> Config:
    """The configuration of a run with what is given put in its place; of `limits` and `otel` what they set.

    The key is today's, since a run holds none. Raises `UsageError`.
    """
    info = run.info
    try:
        today = load_config().models
        config = Config.model_validate(_with_addresses(run, today))
        # Costs are added up at the prices that the run began with, whatever the table says now.
        prices = {
            name.removeprefix("openai:"): Price.model_validate(one) for name, one in info.prices.items()
        }
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise UsageError(
            f"{run.path / 'run.json'}: its configuration does not fit this version: '{key}': {fault['msg']}."
        ) from None
    named = {"generations": generations, "prompts": prompts, "learn": learn}
    changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if limits is not None:
        changes["limits"] = config.limits.model_copy(update=_set_in(limits))
    if otel is not None:
        changes["otel"] = config.otel.model_copy(update=_set_in(otel))
    changes["models"] = _with_keys(config.models, today, {**config.models.prices, **prices})
    return config.replaced({**changes, "target": info.target})


def _with_addresses(run: Run, today: ModelsConfig) -> dict[str, Any]:
    """The recorded configuration with today's addresses where the recorded ones held a password."""
    config = copy.deepcopy(dict(run.info.config))
    models = config.get("models")
    if not isinstance(models, dict):
        return config
    values = cast("dict[str, Any]", models)
    for name in ("", *_AGENTS):
        table: object = values.get(name) if name else values
        if not isinstance(table, dict) or HIDDEN not in str(cast("dict[str, Any]", table).get("base_url")):
            continue
        address = (getattr(today, name) if name else today).base_url
        if address is None:
            key = f"models.{name}.base_url" if name else "models.base_url"
            raise UsageError(
                f"{run.path / 'run.json'}: the address of the endpoint held a password, which no run keeps; "
                f"set {key} as it was when the run began."
            )
        cast("dict[str, Any]", table)["base_url"] = address
    return config


def _with_keys(models: ModelsConfig, today: ModelsConfig, prices: dict[str, Price]) -> ModelsConfig:
    """The recorded `models` with today's keys, its agents' own too."""
    changes: dict[str, Any] = {"prices": prices}
    if today.api_key is not None:
        changes["api_key"] = today.api_key
    for name in _AGENTS:
        own: AgentModel = getattr(models, name)
        key = getattr(today, name).api_key
        if key is not None:
            changes[name] = own.model_copy(update={"api_key": key})
    return models.model_copy(update=changes)


def _set_in(table: Limits | SpansConfig) -> dict[str, Any]:
    return {name: getattr(table, name) for name in table.model_fields_set}


def problem_of(info: RunInfo) -> str | None:
    """What to load the run's problem by: its folder, or its name where that has gone; ``None`` with a target
    that brings its own."""
    if info.target.startswith(RECORDED):
        return None
    return info.problem_path if info.problem_path and Path(info.problem_path).is_dir() else info.problem


def kernel_of(run: Run) -> Path:
    """The run's starting kernel: the user's file, or for one that came from no file the run's copy."""
    return Path(run.info.kernel) if run.info.kernel else _copy(run)


def is_finished(info: RunInfo, config: Config) -> bool:
    """Whether nothing is left to do in a run, unless it is given more generations than it had."""
    return info.status in ("improved", "not_improved") and config.generations <= info.generations


def require_same(run: Run, setup: Setup) -> None:
    """Raise `UsageError` where something that figures depend on is not as it was when the run began."""
    info = run.info
    if setup.problem.key != info.problem_key:
        raise UsageError(
            f"The problem {info.problem} ({setup.problem.folder}) has changed since run {run.id} began; "
            "restore it, or start a new run."
        )
    if setup.kernel.key != info.kernel_key:
        raise UsageError(
            f"The starting kernel {setup.kernel.path} has changed since run {run.id} began; restore it "
            f"(the run's copy is {_copy(run)}), or start a new run."
        )
    here = (setup.target.name, setup.target.device)
    if here != (info.target, info.device):
        raise UsageError(
            f"Run {run.id} measured on {info.target} ({info.device}), and here is {here[0]} ({here[1]}): "
            "the figures could not be compared; start a new run."
        )
    if setup.policy.name != info.policy:
        raise UsageError(
            f"Run {run.id} searched by policy {info.policy}, and here by {setup.policy.name}; pass the same."
        )
    for agent, model in setup.models.items():
        if model.name != info.models.get(agent):
            raise UsageError(
                f"Run {run.id} asked model {info.models.get(agent)} for its {agent}, and here that is "
                f"{model.name}; pass the same model."
            )


def differences(info: RunInfo, setup: Setup) -> tuple[str, ...]:
    """What is not as it was in the sitting before, and may differ, as sentences."""
    prompts = [
        f"the prompt of the {name} has changed: its hash is {one.digest[:12]}, and was "
        f"{info.prompts.get(name, 'not recorded')[:12]}"
        for name, one in setup.prompts.items()
        if info.prompts.get(name) != one.digest
    ]
    versions = [
        f"{name} is {now}, and was {before}"
        for name, now in setup.versions.items()
        if (before := info.versions.get(name, "absent")) != now
    ]
    return (*prompts, *versions)


def require_room(past: Past, config: Config) -> None:
    """Raise `UsageError` when a limit is used up already: the run would end where it begins."""
    from .budget import Budget
    from .interrupts import LimitHit

    if not past.pending(config.generations):
        return
    try:
        Budget(config.limits, spent=past.totals).check_evaluation()
    except LimitHit as limit:
        flag = {"max_time_s": "max-time", "max_cost_usd": "max-cost"}.get(limit.limit)
        flag = flag or limit.limit.replace("_", "-")
        raise UsageError(f"Nothing is left to go on with: {limit}; raise it with --{flag}.") from None


def _copy(run: Run) -> Path:
    return run.path / "candidates" / BASELINE_ID / "kernel.hip"
