"""Where runs are: the option that several commands share, and the run that a failing session leaves."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kernel_scientist.agents import Event

__all__ = ["naming_the_run", "recorded_in", "resolve_runs_dir", "resume_command", "runs_dir_option"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

_NOTE = "run: "


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


@contextmanager
def naming_the_run(runs_dir: Path) -> Generator[Callable[[Event], None]]:
    """Note on whatever the block raises which run it leaves; the block shows its events to what it gets."""
    from kernel_scientist.agents.events import RunResumed, RunStarted

    ids: list[str] = []

    def notice(event: Event) -> None:
        if isinstance(event, (RunStarted, RunResumed)):
            ids.append(event.run_id)

    try:
        yield notice
    except BaseException as error:
        if ids and (runs_dir / ids[-1]).is_dir():
            error.add_note(f"{_NOTE}{runs_dir / ids[-1]}")
        raise


def resume_command(run: Path) -> str:
    """The command that goes on with the run in this folder."""
    where = "" if run.parent == Path("runs") else f" --runs-dir {run.parent}"
    return f"kernel-scientist resume {run.name}{where}"


def recorded_in(error: BaseException) -> Path | None:
    """The folder of the run that `naming_the_run` noted on `error`, or on what caused it."""
    seen: BaseException | None = error
    while seen is not None:
        for note in getattr(seen, "__notes__", ()):
            if note.startswith(_NOTE):
                return Path(note.removeprefix(_NOTE))
        seen = seen.__cause__ or seen.__context__
    return None
