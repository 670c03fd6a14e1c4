"""Where a command's words go: data to stdout, remarks to stderr, one JSON document with ``--json``.

Every text passes through `clean`, so nothing that a candidate, a compiler or a document wrote can
move the cursor, recolour or reorder what is on the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO, TypeVar

import click

from kernel_scientist.sandbox.printable import escape_hidden

from .text import clean

__all__ = ["Style", "echo", "echo_all", "json_option", "print_json", "remark"]

Style = str
"""The name of a style: ``heading``, ``good``, ``bad``, ``dim`` or the empty string."""

_STYLES: dict[Style, dict[str, Any]] = {
    "": {},
    "heading": {"bold": True},
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "dim": {"dim": True},
}


_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def json_option(command: _Callable) -> _Callable:
    """Add ``--json`` to a command, as its argument `as_json`."""
    text = "Print one JSON document on stdout, also on failure."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    print(escape_hidden(json.dumps(value, ensure_ascii=False, indent=2, default=str)))


def echo(text: str = "", style: Style = "") -> None:
    """Print data on stdout, styled when it is a terminal."""
    _write(text, style, sys.stdout)


def remark(text: str = "", style: Style = "") -> None:
    """Print a remark on stderr, styled when it is a terminal."""
    _write(text, style, sys.stderr)


def echo_all(lines: Iterable[str]) -> None:
    """Print lines of data on stdout."""
    for line in lines:
        echo(line)


def _write(text: str, style: Style, stream: TextIO) -> None:
    click.echo(click.style(clean(text), **_STYLES[style]) if style else clean(text), file=stream)
