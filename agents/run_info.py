"""What ``run.json`` says of a run that begins, and of one that goes on."""

from __future__ import annotations

from datetime import UTC, datetime

from .past import Past
from .run import Run, RunInfo
from .setup import Setup

__all__ = ["first_info", "info_again"]


def first_info(run: Run, setup: Setup) -> RunInfo:
    """``run.json`` of a run that begins."""
    return RunInfo(
        id=run.id,
        status="running",
        started=datetime.now(UTC),
        versions=setup.versions,
        config=setup.config.model_dump(mode="json"),
        problem=setup.problem.name,
        problem_path=str(setup.problem.folder.absolute()),
        problem_key=setup.problem.key,
        kernel=str(setup.kernel.path.absolute()) if setup.kernel.path is not None else "",
        kernel_key=setup.kernel.key,
        target=setup.target.name,
        device=setup.target.device,
        sandbox=setup.target.sandbox,
        models={name: model.name for name, model in setup.models.items()},
        prices={
            model.name: model.price.model_dump(exclude_defaults=True)
            for model in setup.models.values()
            if model.price is not None
        },
        prompts={name: prompt.digest for name, prompt in setup.prompts.items()},
        policy=setup.policy.name,
        seed=setup.config.seed,
        generations=setup.config.generations,
    )


def info_again(past: Past, setup: Setup) -> RunInfo:
    """``run.json`` of a run that goes on: what may have changed since, and no end."""
    return past.info.model_copy(
        update={
            "status": "running",
            "stop_reason": "",
            "exit_code": None,
            "finished": None,
            "versions": setup.versions,
            "config": setup.config.model_dump(mode="json"),
            "prompts": {name: prompt.digest for name, prompt in setup.prompts.items()},
            "sandbox": setup.target.sandbox,
            "generations": setup.config.generations,
            "totals": past.totals,
        }
    )
