"""Which compiler is chosen, and that it says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.sandbox import toolchain
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.toolchain import ARCHITECTURES, describe_toolchains, find_toolchain


@pytest.fixture
def fresh() -> None:
    """Look for compilers anew in this test, and again after it."""
    toolchain._toolchains.cache_clear()
    yield
    toolchain._toolchains.cache_clear()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_there_is_a_compiler_for_every_architecture(arch: str) -> None:
    found = find_toolchain(arch)
    assert found.major >= 18
    assert found.version in found.name
    assert (found.include / "stddef.h").exists()
    assert found.clang[0].startswith("/")


def test_an_unknown_architecture_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="gfx942"):
        find_toolchain("gfx9000")


def test_a_wish_that_cannot_be_met_says_how_to_get_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_TOOLCHAIN", "abacus")
    with pytest.raises(UnusableEnvironment, match=r"abacus.*pip install"):
        find_toolchain("gfx942")


def test_doctor_learns_of_every_compiler() -> None:
    names = [name for name, _ in describe_toolchains()]
    assert find_toolchain("gfx942").name in names


def fake_clang(folder: Path, version: str) -> None:
    folder.mkdir()
    script = (
        f'#!/bin/sh\ncase "$1" in --version) echo "clang version {version}" ;; *) echo {folder} ;; esac\n'
    )
    for name in ("clang++", "ld.lld"):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)


@pytest.mark.usefixtures("fresh")
def test_a_system_clang_is_preferred_when_it_is_new_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_TOOLCHAIN", raising=False)
    fake_clang(tmp_path / "new", "21.1.0")
    monkeypatch.setenv("PATH", str(tmp_path / "new"))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "no-rocm"))
    found = [t for t in toolchain._toolchains(()) if t.kind == "clang"]
    assert [t.name for t in found] == ["clang 21.1.0 (clang)"]
    assert found[0].clang == (str(tmp_path / "new" / "clang++"),)


@pytest.mark.usefixtures("fresh")
def test_an_old_system_clang_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_clang(tmp_path / "old", "16.0.6")
    monkeypatch.setenv("PATH", str(tmp_path / "old"))
    assert [t for t in toolchain._toolchains(()) if t.kind == "clang"] == []


@pytest.mark.usefixtures("fresh")
def test_rocm_comes_before_everything_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_TOOLCHAIN", raising=False)
    (tmp_path / "llvm").mkdir()
    fake_clang(tmp_path / "llvm" / "bin", "18.0.0")
    (tmp_path / "include" / "hip").mkdir(parents=True)
    (tmp_path / "include" / "hip" / "hip_runtime.h").touch()
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    found = find_toolchain("gfx942")
    assert (found.kind, found.rocm) == ("rocm", tmp_path)
    assert find_toolchain("gfx950").major >= 20, "clang 18 does not know gfx950"
