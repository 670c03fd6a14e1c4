"""One sshd for all tests of this folder, and a small problem that is judged through it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.remote.client import Patience
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets.ssh import SshTarget

from ..tools.conftest import write_problem
from .server import Relay, SshServer, start_server

QUICK = JudgeSettings(
    screen=TierSettings(3, 3, 0.5, 3),
    confirm=TierSettings(4, 4, 1.0, 1_000_000),
    batch_s=0.002,
    max_runs=16,
    held_out_shapes=1,
)
"""Few pairs of short batches: enough to see a verdict, too few for a claim."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[SshServer]:
    folder = tmp_path_factory.mktemp("sshd")
    passed_on = ("KERNEL_SCIENTIST_", "HIP_VISIBLE_DEVICES")
    kept = {name: value for name, value in os.environ.items() if name.startswith(passed_on)}
    # Beside the compiler cache of the other tests, so that nothing is compiled twice.
    started = start_server(folder, {**kept, "KERNEL_SCIENTIST_HOME": str(home)})
    if isinstance(started, str):
        pytest.skip(f"no ssh server to test with: {started}")
    server, process = started
    try:
        yield server
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def ssh(server: SshServer) -> Iterator[SshServer]:
    """The server, with an `ssh` in the PATH that reaches it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{server.bin}{os.pathsep}{os.environ['PATH']}")
        yield server


@pytest.fixture
def relay(ssh: SshServer) -> Iterator[Relay]:
    relay = Relay(ssh.port)
    yield relay
    relay.close()


@pytest.fixture(scope="session")
def filter_problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return write_problem(tmp_path_factory.mktemp("problems") / "two point")


@pytest.fixture(scope="session")
def connected(ssh: SshServer) -> Iterator[SshTarget]:
    target = SshTarget(SshAddress.parse(ssh.url()), patience=Patience(pauses_s=(0.01, 0.05)))
    yield target
    target.machine.close()
