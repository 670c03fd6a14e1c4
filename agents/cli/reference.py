"""Every command's help as one Markdown page: ``python -m kernel_scientist.agents.cli.reference``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from .app import HELP_OPTIONS, LazyGroup, app

__all__ = ["command_paths", "reference_page"]

_OPENING = """\
# Commands

Written from the commands' own help by `make docs`; a test compares the two.

Exit codes: 0 done (a run: improved) · 1 internal error · 2 usage, configuration or a user's file ·
3 done, nothing correct beat the baseline · 4 stopped by a limit · 5 environment unusable ·
6 some items failed, or the kernel was not accepted · 130 Ctrl-C.
"""


def command_paths() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that name it, groups before what is in them."""
    yield from _walk((), app)


def reference_page() -> str:
    """The whole page."""
    parts = [_OPENING]
    for words, command in command_paths():
        name = " ".join(("kernel-scientist", *words))
        # A fixed width, so that the page does not depend on the terminal it was written from.
        context = click.Context(
            command, info_name=name, terminal_width=100, max_content_width=100, help_option_names=HELP_OPTIONS
        )
        parts.append(f"## {name}\n\n```\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


def _walk(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, LazyGroup):
        for name, entry in command.lazy.items():
            yield from _walk((*words, name), entry.load())


if __name__ == "__main__":
    print(reference_page(), end="")
