"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["resolve_runs_dir", "runs_dir_option"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def runs_dir_option(command: _Callable) -> _Callable:
    """Add ``--runs-dir``, as the argument `runs_dir`; `resolve_runs_dir` settles what it is."""
    kind = click.Path(path_type=Path)
    return click.option("--runs-dir", metavar="DIR", type=kind, help="Where runs are kept.  [default: runs]")(
        command
    )


def resolve_runs_dir(given: Path | None) -> Path:
    """The folder of runs: the flag, else the configuration's."""
    from kernel_scientist.agents import load_config

    return given if given is not None else load_config().runs_dir
