"""The MI300 guide: every command of it is one that this version takes, and what can run here runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kernel_scientist.agents.cli.app import LazyGroup, app
from kernel_scientist.sandbox import gpu_inspection, inspection
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.targets import target_names

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/mi300.md").read_text(encoding="utf-8")
NAME = "kernel-scientist"


def command_lines() -> list[str]:
    """What follows the program's name, in blocks and in the last table, comments left out."""
    blocks = [line.strip() for line in re.findall(r"^    (.+)$", PAGE, re.MULTILINE)]
    inline = re.findall(r"`([^`]+)`", PAGE)
    lines = [line for line in (*blocks, *inline) if re.match(rf"([A-Z_]+=\w+ )?{NAME} ", line)]
    return list(dict.fromkeys(line.partition(f"{NAME} ")[2] for line in lines))


def parsed(line: str) -> click.Context:
    """The context of the command that `line` calls, its options read; nothing is run."""
    words = shlex.split(line, comments=True)
    command: click.Command | None = app
    context = click.Context(app, info_name=NAME)
    while isinstance(command, LazyGroup):
        command = command.get_command(context, words.pop(0))
    assert command is not None, line
    return command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("line", command_lines())
def test_a_command_of_the_guide_is_one(line: str) -> None:
    values = parsed(line).params
    target = values.get("target")
    if target is not None and target.startswith("ssh://"):
        SshAddress.parse(target)
    elif target is not None:
        assert target in target_names()
    # Names are those of bundled problems, and of their kernels.
    name = values.get("problem")
    if name is not None:
        kernels = Problem.load(name).kernels
        assert {values[key] for key in ("kernel", "a", "b") if values.get(key)} <= kernels.keys()


def test_the_guide_has_commands_for_every_step() -> None:
    used = {line.split()[0] for line in command_lines()}
    assert {"doctor", "bench", "run", "compare", "export", "transcript"} <= used


def test_every_row_of_what_is_not_verified_has_its_command() -> None:
    table = PAGE.partition("## Not verified without hardware")[2]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 8
    assert all(len(row) == 3 and "`" in row[1] for row in rows)


def test_the_guide_explains_every_finding_about_gpus() -> None:
    explained = set(re.findall(r"^\| `([a-z0-9 ]+)` \|", PAGE, re.MULTILINE))
    source = "".join(
        Path(str(module.__file__)).read_text(encoding="utf-8") for module in (gpu_inspection, inspection)
    )
    made = set(re.findall(r'name = "([a-z ]+)"|"((?:gpu|visible|numa) ?[a-z]*)", "(?:ok|limited)"', source))
    names = {one or other for one, other in made} | {"container", "gfx942 compiler"}
    assert names - {"amd gpu"} <= explained


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([a-z0-9-]+\.md)\)", PAGE))))
def test_a_page_that_the_guide_links_to_exists(link: str) -> None:
    assert (ROOT / "docs" / link).is_file()


def test_make_targets_of_the_guide_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    used = set(re.findall(r"(?:^    |`)make ([a-z./]+)", PAGE, re.MULTILINE))
    assert {".venv/.run", "conformance"} <= used
    assert all(f"\n{target}:" in makefile for target in used)


def test_doctor_of_the_guide_runs_here(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-m", "kernel_scientist.agents.cli", "doctor"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode in (0, 5), done.stderr
    assert "gfx942 compiler" in done.stdout
