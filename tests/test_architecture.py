"""The shape of the source tree: rooms, who may start processes, what a plain import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("agents", "knowledge", "sandbox", "tools")
STARTERS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "startfile"}


def room_files(*rooms: str) -> list[Path]:
    return [
        path
        for room in rooms
        for path in sorted((ROOT / room).rglob("*.py"))
        if "problems" not in path.relative_to(ROOT).parts
    ]


def starts_processes(tree: ast.AST) -> bool:
    """Whether the code calls something of ``os`` or ``asyncio`` that makes a process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, name = node.value.id, node.attr
            if module == "os" and (name in STARTERS or name.startswith(("exec", "spawn"))):
                return True
            if module == "asyncio" and name.startswith("create_subprocess"):
                return True
    return False


def test_code_lives_in_the_four_rooms_and_the_tests_only() -> None:
    holding_code = {
        path.relative_to(ROOT).parts[0]
        for folder in ROOT.iterdir()
        if folder.is_dir()
        and not folder.name.startswith(".")
        and folder.name not in ("build", "dist", "runs")
        for path in folder.rglob("*.py")
        if path.parent != ROOT / "docs" / "examples"
    }
    assert holding_code == {*ROOMS, "tests"}
    assert not list(ROOT.glob("*.py"))


def test_only_the_sandbox_starts_processes() -> None:
    guilty = [
        str(path.relative_to(ROOT))
        for path in room_files("agents", "knowledge", "tools")
        if starts_processes(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert guilty == []


@pytest.mark.parametrize(
    "code", ["import os\nos.fork()", "import os\nos.execv('a', [])", "asyncio.create_subprocess_exec"]
)
def test_the_search_for_process_starts_finds_them(code: str) -> None:
    assert starts_processes(ast.parse(code))


def test_the_listed_packages_are_the_folders_with_an_init_file() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    there = {
        ".".join(("kernel_scientist", *path.parent.relative_to(ROOT).parts))
        for path in room_files(*ROOMS)
        if path.name == "__init__.py"
    }
    missing = there ^ set(settings["packages"])
    # Folders of data, such as prompts, are listed as packages too; they hold no module.
    assert {name for name in missing if list(folder_of(name).glob("*.py"))} == set()


def folder_of(package: str) -> Path:
    return ROOT.joinpath(*package.split(".")[1:])


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_loads_none_of_the_heavy_packages(room: str) -> None:
    code = (
        f"import sys, kernel_scientist.{room}\n"
        "heavy = {'autogen_agentchat', 'autogen_core', 'chromadb', 'onnxruntime', 'openai', 'tiktoken'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
