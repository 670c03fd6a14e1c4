"""The command line: ``kernel-scientist``. Data goes to stdout, everything human to stderr.

Nothing is imported here that `kernel-scientist --help` does not need; a command's module is imported
when that command runs.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to the process's own."""
    from .entry import run_command

    return run_command(arguments)
