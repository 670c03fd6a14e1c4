"""The tree of commands. A command's module is imported only when the command is used."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["HELP_OPTIONS", "LazyCommand", "LazyGroup", "app"]

HELP_OPTIONS = ["-h", "--help"]


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command lives (``module:attribute``, relative to this package) and its line in the list."""

    path: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.path.partition(":")
        command = getattr(importlib.import_module(f".{module}", __package__), attribute)
        assert isinstance(command, click.Command), self.path
        return command


class LazyGroup(click.Group):
    """A group that lists its commands without importing them, and suggests the nearest name."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.lazy and not name.startswith("-"):
            ctx.fail(_unknown(name, self.lazy))
        return super().resolve_command(ctx, args)


def _unknown(name: str, known: Mapping[str, LazyCommand]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"No such command '{name}', did you mean '{near[0]}'?"
    return f"No such command '{name}'; there are {', '.join(known)}"


def _version() -> str:
    from importlib.metadata import version

    return version("kernel-scientist")


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"kernel-scientist {_version()}")
        ctx.exit(0)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": HELP_OPTIONS, "max_content_width": 100},
    lazy={
        "doctor": LazyCommand("doctor:doctor", "Show what this machine can do and what is missing."),
        "run": LazyCommand("run:run", "Let the agents make a kernel faster."),
        "resume": LazyCommand("resume:resume", "Go on with a run that was stopped, or killed."),
        "bench": LazyCommand("bench:bench", "Have the judge check and time one kernel, without agents."),
        "compare": LazyCommand("compare:compare", "Measure two kernels side by side, or compare two runs."),
        "export": LazyCommand("export:export", "Write a kernel as one file for your own build."),
        "problem": LazyCommand("problem:problem", "List, show and check problems."),
        "knowledge": LazyCommand("knowledge:knowledge", "Add literature, list it, search it."),
        "transcript": LazyCommand("transcript:transcript", "Read the record of a run."),
    },
    epilog="Data goes to stdout, everything else to stderr; --json makes stdout JSON only, also on failure.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version and stop.",
)
def app() -> None:
    """Make GPU kernels faster with a team of language-model agents, and prove it.

    Start with `kernel-scientist doctor`, then `kernel-scientist run matmul`.
    """
