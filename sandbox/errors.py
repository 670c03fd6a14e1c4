"""The root of the error tree; the lowest room owns it so that every room can raise from it.

KernelScientistError            carries one sentence for the user and the exit code it means
├── UsageError                  exit 2: a flag, the configuration or a user's own file is wrong
├── UnusableEnvironment         exit 5: this machine lacks something; the message says what to install
│   ├── SandboxError            the cage or the worker broke (a failing kernel is a result, not this)
│   └── DeviceLost              a GPU does not answer any more; another one may go on in its place
└── InternalError               exit 1: a bug of ours, worth a report
"""

from __future__ import annotations

__all__ = [
    "DeviceLost",
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


class DeviceLost(UnusableEnvironment):
    """A GPU does not answer any more; `said` is what its runtime said.

    `under_kernel` when it was lost while a kernel ran on it.
    """

    def __init__(self, message: str, said: str, *, under_kernel: bool = False) -> None:
        super().__init__(message)
        self.said = said
        self.under_kernel = under_kernel


class InternalError(KernelScientistError):
    """A state the code rules out."""
