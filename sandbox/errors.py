"""The root of the error tree; the lowest room owns it so that every room can raise from it.

KernelScientistError            carries one sentence for the user and the exit code it means
├── UsageError                  exit 2: a flag, the configuration or a user's own file is wrong
├── UnusableEnvironment         exit 5: this machine lacks something; the message says what to install
│   └── SandboxError            the cage or the worker broke (a failing kernel is a result, not this)
└── InternalError               exit 1: a bug of ours, worth a report
"""

from __future__ import annotations

__all__ = [
    "InternalError",
    "KernelScientistError",
    "SandboxError",
    "UnusableEnvironment",
    "UsageError",
]


class KernelScientistError(Exception):
    """One sentence that says what is wrong, where, and how to fix it."""

    exit_code = 1


class UsageError(KernelScientistError):
    """A flag, the configuration or a file the user wrote is wrong."""

    exit_code = 2


class UnusableEnvironment(KernelScientistError):  # noqa: N818 - a state of the machine, named as one
    """The machine lacks something that the command cannot do without."""

    exit_code = 5


class SandboxError(UnusableEnvironment):
    """The cage or the device worker itself failed, whatever the kernel did."""


class InternalError(KernelScientistError):
    """A state the code rules out."""
