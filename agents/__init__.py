"""Agents: who speaks, what they are asked, what is recorded, and the session that runs them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .config import Config, Limits, load_config
    from .events import Event
    from .run import Candidate, Run, RunInfo, list_runs
    from .session import Best, Session, SessionResult

__all__ = [
    "Best",
    "Candidate",
    "Config",
    "Event",
    "Limits",
    "Run",
    "RunInfo",
    "Session",
    "SessionResult",
    "list_runs",
    "load_config",
]

_HOMES = {
    "Best": "session",
    "Candidate": "run",
    "Config": "config",
    "Event": "events",
    "Limits": "config",
    "Run": "run",
    "RunInfo": "run",
    "Session": "session",
    "SessionResult": "session",
    "list_runs": "run",
    "load_config": "config",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the command line must start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
