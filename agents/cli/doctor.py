"""``kernel-scientist doctor``: what a machine can do, what is missing, and what to do about it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from .output import Style, echo, json_option, print_json, remark
from .text import count, one_line

if TYPE_CHECKING:
    from kernel_scientist.sandbox.inspection import Finding, State

__all__ = ["doctor", "examine"]

_STYLES: dict[State, Style] = {"ok": "good", "limited": "", "unusable": "bad"}


@click.command()
@click.option(
    "--target",
    metavar="ssh://HOST",
    help="Look at another machine instead, as ssh://user@host[:port][/python].",
)
@click.option(
    "--install",
    is_flag=True,
    help="With --target: first make a virtual environment there, with pip, that has all that is needed.",
)
@json_option
def doctor(target: str | None, install: bool, as_json: bool) -> int:
    """Show what a machine can do, what is missing and what to do about it.

    Exit code 5 when a session could not run there.
    """
    if target is not None and "://" in target:
        findings = examine_remote(target, install)
    elif install or target is not None:
        raise UsageError("doctor looks at this machine, or with --target ssh://user@host at another one.")
    else:
        findings = examine()
    broken = [one for one in findings if one.state == "unusable"]
    code = UnusableEnvironment.exit_code if broken else 0
    if as_json:
        print_json({"usable": not broken, "findings": [one.to_dict() for one in findings]})
        return code
    width = max(len(one.name) for one in findings)
    for one in findings:
        echo(f"{one.name:<{width}}  {one.state:<8}  {one_line(one.detail, 500)}", _STYLES[one.state])
        if one.fix:
            echo(f"{'':<{width}}  what to do: {one_line(one.fix, 500)}")
    what = "This machine" if target is None else target
    if broken:
        remark(f"{what} cannot run a session: {', '.join(one.name for one in broken)}.")
    elif target is None:
        remark("A session can run here; try 'kernel-scientist run matmul'.")
    else:
        remark(f"Kernels can be judged there; try 'kernel-scientist run matmul --target {target}'.")
    return code


def examine() -> list[Finding]:
    """Look at everything a session needs, in the order in which it would need it."""
    from kernel_scientist.sandbox.inspection import asked, inspect_machine

    return [
        *inspect_machine(),
        asked("knowledge", "limited", _knowledge),
        asked("runs", "limited", _runs),
        asked("models", "limited", _models),
    ]


def examine_remote(target: str, install: bool) -> list[Finding]:
    """Look at another machine: what its Python says before anything is put there, then what a judge needs."""
    from kernel_scientist.sandbox.inspection import Finding
    from kernel_scientist.sandbox.remote.address import SshAddress
    from kernel_scientist.tools.remote.client import RemoteMachine

    machine = RemoteMachine(SshAddress.parse(target))
    try:
        if install:
            remark(f"making a virtual environment on {machine.address} (a minute or two) ...")
            remark(f"made {one_line(machine.install(), 500)}")
        host = machine.look()
        found = [Finding("connection", "ok", f"{machine.address} answers through {host.executable}")]
        if host.missing:
            wanted = " ".join(f"'{one}'" for one in host.missing)
            fix = (
                f"run there `{host.executable} -m pip install {wanted}`, or have an environment made: "
                f"`kernel-scientist doctor --target {machine.address} --install`"
            )
            lacking = f"Python {host.python} lacks {', '.join(host.missing)}"
            return [*found, Finding("packages", "unusable", lacking, fix)]
        findings = machine.inspect()
        return [*found, Finding("program", "ok", f"this version, in {host.home}"), *findings]
    finally:
        machine.close()


def _knowledge() -> str:
    from importlib.metadata import version

    from kernel_scientist.sandbox.files import data_home

    folder = data_home() / "knowledge"
    state = f"{folder}" if folder.exists() else "made at first use from the bundled library"
    return f"{state}; chromadb {version('chromadb')}, onnxruntime {version('onnxruntime')}"


def _runs() -> str:
    from kernel_scientist.agents import list_runs, load_config
    from kernel_scientist.sandbox.inspection import require_writable

    folder = load_config().runs_dir
    require_writable(folder.absolute(), "choose another folder with --runs-dir")
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
