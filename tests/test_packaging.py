"""What is installed: names, versions, the contents of the wheel, and the command it brings."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("agents", "knowledge", "sandbox", "tools")
NOT_SHIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources so that nothing stale gets in and no build/ is left."""
    source = tmp_path_factory.mktemp("source")
    for room in ROOMS:
        shutil.copytree(ROOT / room, source / room, ignore=NOT_SHIPPED)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-P",
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment elsewhere that has the wheel, and the dependencies of this one."""
    place = tmp_path_factory.mktemp("elsewhere") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "-qq"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, timeout=60)
    (packages,) = place.glob("lib/python*/site-packages")
    # A path in a .pth file is not searched for .pth files itself: our own link tree stays out of sight.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin"


def test_the_wheel_holds_every_file_of_the_rooms_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        f"kernel_scientist/{path.relative_to(ROOT)}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "__pycache__")) for part in path.parts[len(ROOT.parts) :])
    }
    metadata = {name for name in names if ".dist-info/" in name}
    assert names - metadata == shipped
    assert "kernel_scientist/__init__.py" not in names


def test_the_wheel_works_in_another_environment(installed: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run(str(installed / "kernel-scientist"), "--version").split()[-1] == version("kernel-scientist")
    assert "matmul" in run(str(installed / "kernel-scientist"), "problem", "list")
    found = run(str(installed / "python"), "-c", "import kernel_scientist.tools as t; print(t.__file__)")
    assert Path(found.strip()).is_relative_to(installed.parent)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_wheel_does_elsewhere_what_the_clone_does(installed: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["KERNEL_SCIENTIST_HOME"] = str(tmp_path / "home")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(installed / "kernel-scientist"), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode in (0, 3), done.stderr
        return done.stdout

    assert "times on this device" in run("run", "transpose", "--generations", "1", "--experiments", "1")
    assert "accepted" in run("bench", "tiled", "--problem", "transpose")
    assert "LDS" in run("knowledge", "search", "bank conflicts")
    assert "candidate 0001" in run("transcript", "show", "last")
    (report,) = (tmp_path / "runs").glob("*/report.md")
    assert "## What was tried and why" in report.read_text(encoding="utf-8")


def test_the_development_environment_has_the_command_too() -> None:
    command = Path(sys.executable).with_name("kernel-scientist")
    if not command.exists():
        pytest.skip("this interpreter's environment was not made by the Makefile")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["kernel-scientist", version("kernel-scientist")]


def test_the_version_is_the_same_in_metadata_project_file_and_changelog() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert version("kernel-scientist") == declared
    assert f"## [{declared}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_rooms_are_never_imported_under_their_bare_names() -> None:
    for room in ROOMS:
        importlib.import_module(f"kernel_scientist.{room}")
    assert not {name for name in sys.modules if name.partition(".")[0] in ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_everything_a_room_exports_can_be_imported(room: str) -> None:
    package = importlib.import_module(f"kernel_scientist.{room}")
    exported = getattr(package, "__all__", ())
    assert [name for name in exported if not hasattr(package, name)] == []
