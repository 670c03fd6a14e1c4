"""``--chroma``: the Chroma server with the vector index, for commands that open the knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["chroma_address", "chroma_option", "configured_chroma"]

_KEY = "kernel_scientist.chroma"
_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def chroma_option(command: _Callable) -> _Callable:
    """Add ``--chroma``, whose value `chroma_address` returns while the command runs."""

    def remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_KEY] = value

    return click.option(
        "--chroma",
        metavar="URL",
        expose_value=False,
        callback=remember,
        help="Keep the vector index on the Chroma server at this address, such as http://localhost:8000.",
    )(command)


def chroma_address() -> str | None:
    """What ``--chroma`` said, if anything."""
    value: str | None = click.get_current_context().meta.get(_KEY)
    return value


def configured_chroma() -> str | None:
    """The address by flag, environment or configuration file, in this order."""
    from kernel_scientist.agents.config import load_config

    return load_config(flags={"chroma": chroma_address()}).chroma
