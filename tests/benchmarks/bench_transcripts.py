"""How a very long run reads: 100,000 events and 5,000 candidates, in the terminal and in the real Chromium.

The first opening reads the whole record; later ones use its index. Then a search over 20 runs of 5,000 events
together. Times are medians with their range over BENCH_RUNS (3); memory is the resident set of the server and
of the tab's process. BENCH_EVENTS and BENCH_CANDIDATES change the size.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EVENTS = int(os.environ.get("BENCH_EVENTS", "100000"))
CANDIDATES = int(os.environ.get("BENCH_CANDIDATES", "5000"))
MANY = 20
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
COMMAND = [sys.executable, "-P", "-m", "kernel_scientist.agents.cli", "transcript"]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kernel-scientist-runs-") as place:
        # The index is kept here, so that the first opening is one.
        os.environ["KERNEL_SCIENTIST_HOME"] = f"{place}/home"
        runs = Path(place, "long")
        record = _generator()(runs, candidates=CANDIDATES, events=EVENTS) / "events.jsonl"
        with record.open("rb") as lines:
            count = sum(1 for _ in lines)
        print(f"{count:,} events, {CANDIDATES:,} candidates, {record.stat().st_size / 1e6:.0f} MB")
        where = ["--runs-dir", str(runs)]
        _tell("list", [_took(lambda: _call("list", *where)) for _ in range(RUNS)])
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            print("  the page: not measured, no Chromium is installed")
        else:
            _page(program, runs)
        _tell("search", [_took(lambda: _call("search", "idea 4990", *where)) for _ in range(RUNS)])
        shown = ["show", "last", "--candidate", "0100", *where]
        _tell("show of one candidate", [_took(lambda: _call(*shown)) for _ in range(RUNS)])
        _many(Path(place, "many"))


def _many(runs: Path) -> None:
    write = _generator()
    for number in range(MANY):
        folder = write(runs, candidates=CANDIDATES // MANY, events=EVENTS // MANY)
        folder.rename(folder.with_name(f"202601{number + 1:02d}-000000-000_matmul_{number:06x}"))
    print(f"{MANY} runs of {EVENTS // MANY:,} events")
    where = ["--runs-dir", str(runs)]
    _tell("search, the first time", [_took(lambda: _call("search", "idea 99", *where))])
    for what in ("idea 99", "nothing holds this"):
        search = ("search", what, *where)
        _tell(f"search for '{what}'", [_took(lambda search=search: _call(*search)) for _ in range(RUNS)])


def _generator() -> Callable[..., Path]:
    """The generator of the tests, whose folder is no package here."""
    spec = importlib.util.spec_from_file_location("big_run", HERE.parent / "viewer/big_run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    write: Callable[..., Path] = module.write_big_run
    return write


def _took(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _tell(what: str, seconds: list[float]) -> None:
    spread = f" ({min(seconds):.2f} to {max(seconds):.2f})" if len(seconds) > 1 else ""
    print(f"  {what:40} {statistics.median(seconds):6.2f} s{spread}", flush=True)


def _call(*words: str) -> None:
    subprocess.run([*COMMAND, *words], check=True, capture_output=True, timeout=600)


def _page(program: str, runs: Path) -> None:
    from playwright.sync_api import sync_playwright

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        # The first time there is no index yet.
        for kind, times in (("no index", 1), ("index", RUNS)):
            marks = {
                "the result": "h1 .figure", "idea, source, evidence": ".cards", "charts": ".chart .best-line",
            }  # fmt: skip
            took: dict[str, list[float]] = {name: [] for name in marks}
            for _ in range(times):
                views, memory = _opened(browser, runs, marks, took)
            for name, seconds in took.items():
                _tell(f"page ({kind}): {name}", seconds)
        browser.close()
    for name, seconds in views.items():
        _tell(f"then {name}", [seconds])
    print(f"  memory after all views: server {memory[0]:.0f} MB, tab {memory[1]:.0f} MB")


def _opened(
    browser: Any, runs: Path, marks: dict[str, str], took: dict[str, list[float]]
) -> tuple[dict[str, float], tuple[float, float]]:
    """Open the page of a server of its own, as somebody does who just got the address; note what came."""
    server = subprocess.Popen(
        [*COMMAND, "view", "last", "--no-open", "--runs-dir", str(runs)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        page = browser.new_context().new_page()
        address = server.stdout.readline().strip()
        began = time.perf_counter()
        page.goto(address)
        for name, mark in marks.items():
            page.wait_for_selector(mark, state="attached", timeout=120_000)
            took[name].append(time.perf_counter() - began)
        views = _views(page, address)
        memory = (_resident(server.pid), max(_resident(pid) for pid in _renderers(browser)))
        page.context.close()
    finally:
        server.terminate()
        server.wait()
    return views, memory


def _views(page: Any, address: str) -> dict[str, float]:
    """How long each view takes from its address to its content."""
    marks = {
        "conversation": ".conversation .item",
        "lineage": ".candidates tbody tr",
        "candidates/0100": "h1",
        "cost": "main table, main .chart",
    }
    found: dict[str, float] = {}
    for name, mark in marks.items():
        began = time.perf_counter()
        page.evaluate("where => { document.querySelector('main').replaceChildren(); location.href = where; }",
                      f"{address}/{name}")  # fmt: skip
        page.wait_for_selector(mark, state="attached", timeout=120_000)
        found[name] = time.perf_counter() - began
    return found


def _renderers(browser: Any) -> list[int]:
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return [one["id"] for one in processes if one["type"] == "renderer"]


def _resident(pid: int) -> float:
    """The resident set of a process in MB."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) / 1e3
