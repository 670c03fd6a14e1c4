"""A home of their own for all tests: nothing is read from or written to the user's folders.

And the GPU that tests use: a folder that plays ROCm, or with ``--real-device`` the machine's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.rocm import devices, find_runtime

from .sandbox.fakehip.machine import FakeRocm, build_fake_rocm

_KEPT = {"KERNEL_SCIENTIST_CAGE", "KERNEL_SCIENTIST_TOOLCHAIN", "KERNEL_SCIENTIST_HIP_LIBRARY"}
_SELECTING = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-device",
        action="store_true",
        help="run the tests that take the fixture 'gpu' on this machine's AMD GPU; see `make conformance`",
    )


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """The session's KERNEL_SCIENTIST_HOME. All tests share its compiler cache, which is keyed by content.

    Configuration and credentials of whoever runs the tests are hidden, so that no test can reach an
    endpoint by accident; and so are GPUs, unless they are asked for.
    """
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("KERNEL_SCIENTIST_", "OPENAI_", "OTEL_")) and name not in _KEPT:
                patch.delenv(name)
        patch.setenv("KERNEL_SCIENTIST_HOME", str(folder))
        patch.setenv("NO_COLOR", "1")
        if not pytestconfig.getoption("--real-device"):
            patch.setenv("HIP_VISIBLE_DEVICES", "-1")
        yield folder


@pytest.fixture(scope="session")
def rocm_folder(tmp_path_factory: pytest.TempPathFactory) -> FakeRocm:
    """A folder that plays ROCm, built once; tests take `rocm`, which leaves it as it found it."""
    return build_fake_rocm(tmp_path_factory.mktemp("rocm") / "root")


@pytest.fixture
def rocm(rocm_folder: FakeRocm, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRocm]:
    """A machine with one MI300X that runs kernels on the CPU, the way a user's environment names it."""
    for name in (*_SELECTING, "HIP_PATH", "KERNEL_SCIENTIST_HIP_LIBRARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROCM_PATH", str(rocm_folder.root))
    rocm_folder.configure()
    yield rocm_folder
    rocm_folder.configure()


@pytest.fixture
def real_device(pytestconfig: pytest.Config) -> bool:
    """Whether the tests are to use this machine's own GPU; skips those that do where it has none."""
    if not pytestconfig.getoption("--real-device"):
        return False
    library = find_runtime()
    if library is None:
        pytest.skip("no device: this machine has no ROCm runtime")
    try:
        found = devices(library)
    except UnusableEnvironment as error:
        pytest.skip(f"no device: {error}")
    if not found:
        pytest.skip(f"no device: {library} finds none")
    return True
