"""Recorded runs of the offline model, a server that shows them, and an installed Chromium."""

from __future__ import annotations

import os
import shutil
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents.viewer.server import PageServer, open_server

from ..cli.recorded import write_run

# Read before the tests' home hides what is called so.
REQUIRED = os.environ.get("KERNEL_SCIENTIST_REQUIRE_BROWSER") == "1"
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
]  # fmt: skip
RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Runs:
    """A folder of runs: two of real sessions, and one with hostile text in it."""

    folder: Path
    first: str
    second: str
    hostile: str


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """What sessions of the offline model on the CPU device recorded (`pack.py` packs such runs)."""
    folder = tmp_path_factory.mktemp("shown") / "runs"
    # The first releases of Python 3.11 know no filters; later ones warn where none is chosen.
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    for archive in sorted(RECORDED.glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, **options)
    first, second = sorted(path.name for path in folder.iterdir())
    return Runs(folder, first, second, write_run(folder).name)


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[PageServer]:
    """A server of the runs in `folder`, in a thread of its own."""
    server = open_server(folder, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server(runs: Runs) -> Iterator[PageServer]:
    with serving(runs.folder) as found:
        yield found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Chromium of this machine. While it is there no test may run an event loop: its driver has one."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        if REQUIRED:
            pytest.fail("no Chromium is installed, and KERNEL_SCIENTIST_REQUIRE_BROWSER=1 asks for one")
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    home = tmp_path_factory.mktemp("browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=FLAGS, env={**os.environ, "HOME": str(home)}
        )
        yield browser
        browser.close()
