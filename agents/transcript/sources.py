"""A candidate's files as text, read from its run's folder and from nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from ..run import Run
from .beneath import read_beneath

__all__ = ["FileText", "file_beside", "source_text"]

_MOST = 8_000_000


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, or why there is none (`fault`: a sentence)."""

    text: str
    fault: str = ""


def source_text(run: Run, path: str) -> FileText:
    """The text of the file that an event names by its path in the run's folder."""
    try:
        return FileText(read_beneath(run.path, path, _MOST).decode("utf-8", "replace"))
    except FileNotFoundError:
        return FileText("", f"{path} is missing from the run's folder.")
    except OSError as error:
        return FileText("", f"{path} is not shown: {error.strerror}.")


def file_beside(run: Run, path: str, name: str) -> str:
    """The text of the file `name` in the folder of `path`; empty where there is none."""
    return source_text(run, str(PurePosixPath(path).parent / name)).text
