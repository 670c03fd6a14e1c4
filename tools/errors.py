"""Faults in what people and agents write: expressions, launch plans, problem folders.

ValueError
└── ExpressionError     an expression is not arithmetic, or has no value; its caller knows the place
KernelScientistError
├── PlanError           a kernel file's plan; a verdict for a candidate, exit 2 for a user's own file
└── UsageError
    └── ProblemError    a problem folder, which is always the user's own
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError

from .text import clean

__all__ = ["ExpressionError", "PlanError", "ProblemError", "nearest"]


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the message does not say where it stands."""


def _located(message: str, path: Path | None, line: int | None, default: str) -> str:
    place = str(path) if path is not None else default
    if line is not None:
        place += f", line {line}"
    return f"{place}: {message}"


class PlanError(KernelScientistError):
    """A kernel's launch plan is wrong; `line` counts from 1 in the kernel file, when it is known."""

    exit_code = 2

    def __init__(self, message: str, *, line: int | None = None, path: Path | None = None) -> None:
        message = clean(message)  # it quotes the plan
        super().__init__(_located(message, path, line, "plan"))
        self.message = message
        self.line = line
        self.path = path

    def as_usage_error(self) -> UsageError:
        """The same fault for the user whose own file it is in."""
        return UsageError(str(self))


class ProblemError(UsageError):
    """A problem folder is wrong; `path` is the file at fault, `line` counts from 1 when it is known."""

    def __init__(self, message: str, *, path: Path, line: int | None = None) -> None:
        super().__init__(_located(message, path, line, "problem"))
        self.message = message
        self.line = line
        self.path = path


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to append to an unknown-name message: the nearest known name, else all of them."""
    names = sorted(known)
    folded = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    return f"known here: {', '.join(names)}" if names else "none is known here"
