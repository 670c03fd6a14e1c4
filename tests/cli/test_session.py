"""Whole sessions through the command: progress, closing report, record, limits and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Command, Done, entry_point
from .scaling import write_problem


@dataclass(frozen=True)
class Ended:
    """A finished session: what it printed, and the folder it was started in."""

    done: Done
    folder: Path

    @property
    def run(self) -> Path:
        (run,) = (self.folder / "runs").iterdir()
        return run


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("session")
    write_problem(folder / "scaling")
    done = subprocess.run(
        [*entry_point(), "run", "scaling/", "--generations", "1", "--experiments", "2", "--seed", "1"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
    )
    return Ended(Done(done.returncode, done.stdout, done.stderr), folder)


def test_a_session_ends_with_a_report_and_the_exit_code_of_its_outcome(ended: Ended) -> None:
    info = json.loads((ended.run / "run.json").read_text())
    assert ended.done.code == info["exit_code"] == {"improved": 0, "not_improved": 3}[info["status"]], (
        ended.done.err
    )
    for expected in (
        f"{ended.run.name}/events.jsonl",
        "VGPRs",
        "predict nothing for an",
        "try next",
        "speed of light",
    ):
        assert expected in ended.done.out


def test_an_improvement_names_its_kernel_and_its_confirmed_interval(ended: Ended) -> None:
    if ended.done.code != 0:
        pytest.skip("this session found nothing faster, which its exit code 3 says")
    assert "confirmed in fresh pairs [#" in ended.done.out
    assert (ended.run / "best" / "kernel.hip").is_file()
    assert f"{ended.run.name}/best/kernel.hip" in ended.done.out


def test_progress_is_plain_lines_on_stderr_when_it_is_no_terminal(ended: Ended) -> None:
    assert "\x1b" not in ended.done.err + ended.done.out
    for expected in ("generation 1/1", "Selector:", "Researcher", "candidates", "tokens, $0.00", "best"):
        assert expected in ended.done.err


def test_the_transcript_of_the_session_shows_all_four_agents(command: Command, ended: Ended) -> None:
    shown = command("transcript", "show", "last", cwd=ended.folder)
    assert shown.code == 0, shown.err
    for agent in ("Selector", "Researcher", "Coder", "Benchmarker"):
        assert f"\n{agent} [#" in shown.out
    assert "looked up" in shown.out


@pytest.mark.slow
def test_resume_learns_from_a_finished_run_and_refuses_a_bad_collector(
    command: Command, ended: Ended, tmp_path: Path
) -> None:
    home = {"KERNEL_SCIENTIST_HOME": str(tmp_path)}
    learnt = command("resume", "last", "--learn", "--json", cwd=ended.folder, env=home)
    assert learnt.code == ended.done.code, learnt.err
    assert learnt.json["learnt"].startswith("Added: ") and "of experience" in learnt.err

    more = ("--generations", "2", "--otel", "collector")
    refused = command("resume", "last", *more, cwd=ended.folder, env=home)
    assert refused.code == 2 and "collector" in refused.err


def test_ctrl_c_ends_the_session_with_exit_code_130_and_a_whole_record(tmp_path: Path) -> None:
    write_problem(tmp_path / "scaling")
    process = subprocess.Popen(
        [*entry_point(), "run", "scaling/", "--generations", "50"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for_event(tmp_path / "runs", "generation_started", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    (run,) = (tmp_path / "runs").iterdir()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    assert all(json.loads(line) for line in (run / "events.jsonl").read_text().splitlines())


@pytest.mark.slow
def test_a_limit_is_exit_code_4_and_on_a_terminal_progress_is_a_live_line(tmp_path: Path) -> None:
    write_problem(tmp_path / "scaling")
    main_end, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [*entry_point(), "run", "scaling/", "--generations", "50", "--max-evaluations", "1", "--json"],
        cwd=tmp_path,
        env={**environment, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    try:
        shown = read_all(main_end)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(main_end)
    values = json.loads(out)
    assert process.returncode == values["exit_code"] == 4
    assert values["totals"]["evaluations"] >= 1
    assert b"\x1b[" in shown
    assert b"generation 1/50" in shown


def wait_for_event(runs: Path, kind: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if any(f'"{kind}"' in lines.read_text() for lines in runs.glob("*/events.jsonl")):
            return
        time.sleep(0.1)
    raise AssertionError(f"no event '{kind}' came; exit code {process.poll()}")


def read_all(descriptor: int) -> bytes:
    """Everything written to a terminal until its last writer has closed it."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
