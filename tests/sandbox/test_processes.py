"""Commands run to their end or to a limit, and nothing of them stays."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.processes import Completed, Limits, run


def shell(script: str, *, timeout_s: float = 20.0, limits: Limits | None = None, **rest: object) -> Completed:
    return run(["/bin/sh", "-c", script], cwd=Path("/"), timeout_s=timeout_s, limits=limits, **rest)  # type: ignore[arg-type]


def test_output_status_and_input_pass_through() -> None:
    completed = shell("cat; echo problem >&2; exit 3", input=b"x" * 300_000)
    assert completed.stdout == b"x" * 300_000
    assert completed.stderr == b"problem\n"
    assert (completed.returncode, completed.timed_out) == (3, False)


def test_input_that_nobody_reads_is_no_error() -> None:
    assert shell("exit 0", input=b"x" * 300_000).returncode == 0


def test_the_environment_is_empty_unless_given() -> None:
    assert b"HOME" not in run(["/usr/bin/env"], cwd=Path("/"), timeout_s=20.0).stdout
    assert shell("echo $A", env={"A": "b"}).stdout == b"b\n"


def test_at_the_time_limit_the_whole_group_is_killed(tmp_path: Path) -> None:
    child = tmp_path / "child"
    completed = shell(f"sleep 60 & echo $! > {child}; echo started; wait", timeout_s=0.5)
    assert completed.timed_out
    assert completed.stdout == b"started\n"
    assert_dead(int(child.read_text()))


def test_what_a_finished_command_left_in_the_background_is_killed(tmp_path: Path) -> None:
    child = tmp_path / "child"
    completed = shell(f"sleep 60 & echo $! > {child}; echo done")
    assert completed.stdout == b"done\n"
    assert not completed.timed_out
    assert_dead(int(child.read_text()))


def assert_dead(pid: int) -> None:
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still alive")


def test_output_beyond_the_limit_is_dropped_and_the_command_goes_on() -> None:
    completed = shell("head -c 1000000 /dev/zero; echo end >&2", limits=Limits(output_bytes=1000))
    assert completed.stdout == bytes(1000)
    assert completed.stderr == b"end\n"


def test_the_last_words_of_a_command_are_not_lost() -> None:
    for _ in range(20):
        assert shell("echo a; echo b").stdout == b"a\nb\n"


def test_memory_and_file_sizes_are_limited(tmp_path: Path) -> None:
    grab = [sys.executable, "-c", "bytearray(1 << 30)"]
    completed = run(grab, cwd=tmp_path, timeout_s=20.0, limits=Limits(memory_bytes=1 << 28))
    assert completed.returncode != 0
    limits = Limits(file_bytes=1 << 16)
    writing = ["/bin/sh", "-c", "head -c 1000000 /dev/zero > big"]
    run(writing, cwd=tmp_path, timeout_s=20.0, limits=limits)
    assert (tmp_path / "big").stat().st_size <= 1 << 16


def test_given_descriptors_are_inherited_and_others_are_not() -> None:
    reading, writing = os.pipe()
    try:
        completed = shell(f"echo hello > /proc/self/fd/{writing}", pass_fds=[writing])
        assert completed.returncode == 0
        assert os.read(reading, 100) == b"hello\n"
        assert shell(f"echo hello > /proc/self/fd/{writing}").returncode != 0
    finally:
        os.close(reading)
        os.close(writing)


def test_a_program_that_does_not_exist_is_named() -> None:
    completed = run(["/nowhere/clang"], cwd=Path("/"), timeout_s=20.0)
    assert completed.returncode == 127
    assert b"/nowhere/clang" in completed.stderr
    with pytest.raises(UnusableEnvironment):
        run(["/bin/sh"], cwd=Path("/nowhere"), timeout_s=20.0)


def test_many_threads_may_run_commands_at_once() -> None:
    outputs: list[bytes] = []
    threads = [
        threading.Thread(target=lambda i=i: outputs.append(shell(f"echo {i}").stdout)) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == [f"{i}\n".encode() for i in range(8)]
