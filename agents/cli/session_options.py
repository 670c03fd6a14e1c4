"""What `run` and `resume` have in common: options that set configuration keys, a session on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .output import echo_all, print_json, remark

if TYPE_CHECKING:
    from kernel_scientist.agents import Event, Session, SessionResult

__all__ = ["configuration_keys", "hold_session", "report", "seconds", "session_options"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

_LENGTH = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")

# Options whose key has another name; that of the others is their own.
_KEYS = {
    "max_time": "limits.max_time_s",
    "max_evaluations": "limits.max_evaluations",
    "max_tokens": "limits.max_tokens",
    "max_cost": "limits.max_cost_usd",
    "otel": "otel.endpoint",
    "otel_content": "otel.content",
    "no_sandbox": "allow_no_sandbox",
}


def seconds(text: str) -> float:
    """The seconds of a length of time such as ``90``, ``90s``, ``30m`` or ``1h30m``."""
    match = _LENGTH.fullmatch(text.strip())
    total = 0.0
    if match is not None:
        for part, unit in zip(match.groups(), (3600, 60, 1), strict=True):
            total += float(part or 0) * unit
    if total <= 0:
        raise click.BadParameter(f"'{text}' is not a length of time; write it like 90s, 30m or 1h30m")
    return total


def session_options(so_far: str = "") -> Callable[[_Callable], _Callable]:
    """Add prompts, limits, spans and learning; `so_far` says that limits count what was used before."""
    options = [
        click.option(
            "--prompts",
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="A folder of prompt files (selector.md ...) that replace the bundled ones.",
        ),
        click.option(
            "--max-time",
            type=seconds,
            metavar="TIME",
            help=f"Stop after this time{so_far}, such as 90s, 30m or 1h30m; a bare number is in seconds.",
        ),
        click.option(
            "--max-evaluations", type=int, metavar="N", help=f"Stop after so many judged candidates{so_far}."
        ),
        click.option("--max-tokens", type=int, metavar="N", help=f"Stop after so many model tokens{so_far}."),
        click.option("--max-cost", type=float, metavar="USD", help=f"Stop after so many US dollars{so_far}."),
        click.option(
            "--otel",
            metavar="URL",
            help="Send spans to this OTLP collector as the run goes on (extra `otel`).",
        ),
        click.option(
            "--otel-content", is_flag=True, help="Let the spans hold what was said, asked and answered."
        ),
        click.option(
            "--learn", is_flag=True, help="Keep the findings as experience, as 'knowledge learn' does."
        ),
    ]

    def add(command: _Callable) -> _Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def configuration_keys(given: Mapping[str, object]) -> dict[str, object]:
    """The options that were given, by the configuration keys that they set."""
    values = {_KEYS.get(name, name): value for name, value in given.items()}
    return {key: value for key, value in values.items() if value is not None and value is not False}


def hold_session(
    make: Callable[[Callable[[Event], None]], Session], runs_dir: Path, max_time_s: float | None
) -> tuple[SessionResult, bool]:
    """Run what `make` makes with progress on stderr; the result, and whether there were any events."""
    from .places import naming_the_run
    from .progress import open_display

    heard = False
    with naming_the_run(runs_dir) as notice, open_display(max_time_s) as display:

        def observe(event: Event) -> None:
            nonlocal heard
            heard = True
            notice(event)
            display.show(event)

        result = make(observe).run()
    return result, heard


def report(result: SessionResult, *, as_json: bool) -> int:
    """Print how a session ended; returns its exit code."""
    from .closing import closing_lines, closing_values

    if result.learnt:
        remark(result.learnt)
    if as_json:
        print_json(closing_values(result))
    else:
        echo_all(closing_lines(result))
    return result.exit_code
