"""A home of their own for all tests: nothing is read from or written to the user's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sandbox.fakehip.machine import FakeRocm, build_fake_rocm

_KEPT = {"KERNEL_SCIENTIST_CAGE", "KERNEL_SCIENTIST_TOOLCHAIN"}


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The session's KERNEL_SCIENTIST_HOME. All tests share its compiler cache, which is keyed by content.

    Configuration and credentials of whoever runs the tests are hidden, so that no test can reach an
    endpoint by accident.
    """
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("KERNEL_SCIENTIST_", "OPENAI_")) and name not in _KEPT:
                patch.delenv(name)
        patch.setenv("KERNEL_SCIENTIST_HOME", str(folder))
        patch.setenv("NO_COLOR", "1")
        yield folder


@pytest.fixture(scope="session")
def rocm_folder(tmp_path_factory: pytest.TempPathFactory) -> FakeRocm:
    """A folder that plays ROCm, built once; tests take `rocm`, which leaves it as it found it."""
    return build_fake_rocm(tmp_path_factory.mktemp("rocm") / "root")


@pytest.fixture
def rocm(rocm_folder: FakeRocm, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRocm]:
    """A machine with one MI300X, the way a user's environment names it."""
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HIP_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROCM_PATH", str(rocm_folder.root))
    rocm_folder.configure()
    yield rocm_folder
    rocm_folder.configure()
