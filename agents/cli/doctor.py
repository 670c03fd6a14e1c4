"""``kernel-scientist doctor``: what this machine can do, and what is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment

from .output import Style, echo, json_option, print_json, remark
from .text import count, one_line

__all__ = ["Finding", "doctor", "examine"]

State = Literal["ok", "limited", "unusable"]

_STYLES: dict[State, Style] = {"ok": "good", "limited": "", "unusable": "bad"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``limited``: the program works, with less; ``unusable``: it does not."""

    name: str
    state: State
    detail: str


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Show what this machine can do and what is missing. Exit code 5 when a session could not run here."""
    findings = examine()
    broken = [one for one in findings if one.state == "unusable"]
    code = UnusableEnvironment.exit_code if broken else 0
    if as_json:
        print_json({"usable": not broken, "findings": [asdict(one) for one in findings]})
        return code
    width = max(len(one.name) for one in findings)
    for one in findings:
        echo(f"{one.name:<{width}}  {one.state:<8}  {one.detail}", _STYLES[one.state])
    if broken:
        remark(f"This machine cannot run a session: {', '.join(one.name for one in broken)}.")
    else:
        remark("A session can run here; try 'kernel-scientist run matmul'.")
    return code


def examine() -> list[Finding]:
    """Look at everything a session needs, in the order in which it would need it."""
    return [
        _python(),
        _asked("cpu compiler", "unusable", lambda: _compiler("cpu")),
        _asked("gfx942 compiler", "limited", lambda: _compiler("gfx942")),
        _asked("cage", "unusable", _cage),
        _asked("device", "unusable", _device),
        _asked("data folder", "unusable", _data_folder),
        _asked("knowledge", "limited", _knowledge),
        _asked("runs", "limited", _runs),
        _asked("models", "limited", _models),
    ]


def _asked(name: str, otherwise: State, ask: Callable[[], str]) -> Finding:
    """The answer as a finding; what is raised for the user becomes the state `otherwise`."""
    try:
        return Finding(name, "ok", one_line(ask()))
    except (KernelScientistError, OSError, ImportError) as error:
        return Finding(name, otherwise, one_line(str(error)))


def _python() -> Finding:
    usable = sys.version_info >= (3, 11) and sys.platform == "linux" and platform.machine() == "x86_64"
    detail = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Finding(
        "python", "ok" if usable else "unusable", detail if usable else f"{detail}; x86-64 Linux is needed"
    )


def _compiler(arch: str) -> str:
    from kernel_scientist.sandbox.toolchain import find_toolchain

    found = find_toolchain(arch)
    return f"{found.name}, {found.clang[0]}"


def _cage() -> str:
    from kernel_scientist.sandbox.cage import select_cage

    cage = select_cage()
    return " ".join(
        part for part in (cage.name, cage.version, f"({cage.detail})" if cage.detail else "") if part
    )


def _device() -> str:
    from kernel_scientist.sandbox.device import cpu_device

    device = cpu_device()
    return f"{device.model}, {device.cores} cores"


def _data_folder() -> str:
    from kernel_scientist.sandbox.files import cache_home, data_home

    for folder in (data_home(), cache_home()):
        _require_writable(folder, "set KERNEL_SCIENTIST_HOME to a folder that can be")
    return f"{data_home()}, cache in {cache_home()}"


def _require_writable(folder: Path, otherwise: str) -> None:
    """Raise unless `folder` may be written or made; nothing is made."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UnusableEnvironment(f"{folder} cannot be written; {otherwise}.")


def _knowledge() -> str:
    from importlib.metadata import version

    from kernel_scientist.sandbox.files import data_home

    folder = data_home() / "knowledge"
    state = f"{folder}" if folder.exists() else "made at first use from the bundled library"
    return f"{state}; chromadb {version('chromadb')}, onnxruntime {version('onnxruntime')}"


def _runs() -> str:
    from kernel_scientist.agents import list_runs, load_config

    folder = load_config().runs_dir
    _require_writable(folder.absolute(), "choose another folder with --runs-dir")
    return f"{folder}, {count(len(list_runs(folder)), 'run')}"


def _models() -> str:
    from kernel_scientist.agents import load_config

    config = load_config()
    models = config.models
    key = "set" if os.environ.get(models.api_key_env) or models.api_key else "not set"
    endpoint = models.base_url or os.environ.get("OPENAI_BASE_URL") or "the client's default endpoint"
    return (
        f"default {config.model}; offline is built in and needs no key; other names go to {endpoint} "
        f"({models.api_key_env} is {key})"
    )
