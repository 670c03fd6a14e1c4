"""``kernel-scientist resume``: a run that was stopped goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .output import json_option, remark
from .places import resolve_runs_dir, runs_dir_option
from .session_options import configuration_keys, hold_session, report, session_options

__all__ = ["resume"]


@click.command()
@click.argument("run", default="last")
@click.option(
    "--generations", type=int, metavar="N", help="How many generations at most, those done included."
)
@session_options(" in all, that of before included")
@runs_dir_option
@json_option
def resume(run: str, runs_dir: Path | None, as_json: bool, **given: object) -> int:
    """Go on with a RUN that was stopped by Ctrl-C, a limit, a fault or a kill.

    RUN is an id, the beginning of one, a folder, or `last` (the default). The run's own configuration holds;
    the options replace what they name of it. At most the model call that was on its way is paid for twice. A
    finished run stays as it is, unless it is given more generations.

    The exit codes are those of `kernel-scientist run`.
    """
    from kernel_scientist.agents import Run, Session, load_config
    from kernel_scientist.agents.resuming import config_of

    flags = configuration_keys(given)
    # Checked with the names of the options, before the run is looked at.
    load_config(flags=flags)
    found = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    changes = _changes(flags)
    result, heard = hold_session(
        lambda observe: Session.resume(found, observer=observe, **changes),
        found.path.parent,
        config_of(found, **changes).limits.max_time_s,
    )
    if not heard:
        remark(
            f"Run {found.id} is finished ({result.status}): nothing is left to do, and nothing was changed."
        )
    return report(result, as_json=as_json)


def _changes(flags: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of `Session.resume` that configuration keys stand for."""
    from kernel_scientist.agents.config import Limits, SpansConfig

    tables: dict[str, type[Limits | SpansConfig]] = {"limits": Limits, "otel": SpansConfig}
    whole = {key: value for key, value in flags.items() if "." not in key}
    parts = {
        name: {key.partition(".")[2]: value for key, value in flags.items() if key.startswith(f"{name}.")}
        for name in tables
    }
    return whole | {name: tables[name].model_validate(values) for name, values in parts.items() if values}
