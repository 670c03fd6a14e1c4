"""``kernel-scientist resume``: a run that was stopped goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import echo_all, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .run import seconds

if TYPE_CHECKING:
    from kernel_scientist.agents import Event

__all__ = ["resume"]


@click.command()
@click.argument("run", default="last")
@click.option(
    "--generations", type=int, metavar="N", help="How many generations at most, those done included."
)
@click.option(
    "--max-time",
    type=seconds,
    metavar="TIME",
    help="Stop after this time, that of before included, such as 90s, 30m or 1h30m.",
)
@click.option("--max-evaluations", type=int, metavar="N", help="Stop after so many judged candidates in all.")
@click.option("--max-tokens", type=int, metavar="N", help="Stop after so many model tokens in all.")
@click.option("--max-cost", type=float, metavar="USD", help="Stop after so many US dollars in all.")
@runs_dir_option
@json_option
def resume(
    run: str,
    generations: int | None,
    max_time: float | None,
    max_evaluations: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Go on with a RUN that was stopped by Ctrl-C, a limit, a fault or a kill.

    RUN is an id, the beginning of one, a folder, or `last` (the default). The run's own configuration holds;
    the options replace its limits. At most the model call that was on its way is paid for twice. A finished
    run stays as it is, unless it is given more generations.

    The exit codes are those of `kernel-scientist run`.
    """
    from kernel_scientist.agents import Run, Session, load_config
    from kernel_scientist.agents.config import Limits
    from kernel_scientist.agents.resuming import config_of

    from .closing import closing_lines, closing_values
    from .places import naming_the_run
    from .progress import open_display

    flags = {
        "max_time_s": max_time,
        "max_evaluations": max_evaluations,
        "max_tokens": max_tokens,
        "max_cost_usd": max_cost,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    # Checked with the names of the options, before the run is looked at.
    load_config(flags={"generations": generations, **{f"limits.{name}": one for name, one in given.items()}})
    found = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    limits = Limits.model_validate(given)
    heard = False
    with (
        naming_the_run(found.path.parent) as notice,
        open_display(config_of(found, generations=None, limits=limits).limits.max_time_s) as display,
    ):

        def observe(event: Event) -> None:
            nonlocal heard
            heard = True
            notice(event)
            display.show(event)

        result = Session.resume(found, generations=generations, limits=limits, observer=observe).run()
    if not heard:
        remark(
            f"Run {found.id} is finished ({result.status}): nothing is left to do, and nothing was changed."
        )
    if as_json:
        print_json(closing_values(result))
    else:
        echo_all(closing_lines(result))
    return result.exit_code
