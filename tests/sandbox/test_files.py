"""Atomic files, locks and the folders that this program keeps."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import SandboxError, UnusableEnvironment, UsageError
from kernel_scientist.sandbox.files import (
    FileLock,
    atomic_write,
    cache_home,
    data_home,
    explain_os_error,
    explained,
    read_regular,
)


def test_the_home_variable_decides_where_data_and_cache_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path))
    assert data_home() == tmp_path
    assert cache_home() == tmp_path / "cache"


def test_without_it_the_xdg_folders_are_used_and_relative_ones_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_home() == tmp_path / "data" / "kernel-scientist"
    assert cache_home() == tmp_path / ".cache" / "kernel-scientist"


def test_only_regular_files_within_the_limit_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (file, "it has 5 bytes or more, and may have 4"),
        (Path("/proc/self/status"), "it has 5 bytes or more"),
        (Path("/dev/zero"), "it is not a regular file"),
        (tmp_path / "pipe", "it is not a regular file"),
        (tmp_path, "it is a folder"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(OSError, match=says):
            read_regular(path, 4)


def test_a_written_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    atomic_write(target, "old")
    atomic_write(target, "new ü")
    assert target.read_text(encoding="utf-8") == "new ü"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_keeps_the_old_file_and_no_part_of_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "kept").touch()
    with pytest.raises(OSError, match="folder"):
        atomic_write(target, b"a folder cannot be replaced by a file")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (target / "kept").exists()


def test_a_written_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "file", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (errno.ENOSPC, UnusableEnvironment, "no space is left"),
        (errno.EROFS, UsageError, "read-only"),
        (errno.EACCES, UsageError, "permission"),
        (errno.ENOENT, UsageError, "does not exist"),
    ],
)
def test_an_os_error_becomes_one_sentence_of_the_right_kind(code: int, kind: type, says: str) -> None:
    error = explain_os_error(OSError(code, os.strerror(code)), "write the run", Path("/runs/x"))
    assert type(error) is kind
    assert says in str(error)
    assert "/runs/x" in str(error) and "write the run" in str(error)


def test_explained_keeps_the_original_as_the_cause(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught, explained("read the kernel"):
        (tmp_path / "absent").read_text()
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert "absent" in str(caught.value)


def test_threads_take_turns_under_one_lock(tmp_path: Path) -> None:
    inside, worst = 0, 0

    def work() -> None:
        nonlocal inside, worst
        for _ in range(5):
            with FileLock(tmp_path / "lock"):
                inside += 1
                worst = max(worst, inside)
                time.sleep(0.001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worst == 1


def test_who_waits_too_long_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / "lock", purpose="(rebuilding)"),
        pytest.raises(SandboxError, match=rf"process {os.getpid()} \(rebuilding\)"),
        FileLock(tmp_path / "lock", timeout_s=0.05),
    ):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib\n"
        "from kernel_scientist.sandbox.files import FileLock\n"
        "FileLock(pathlib.Path(sys.argv[1])).__enter__()\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SandboxError), FileLock(tmp_path / "lock", timeout_s=0.05):
            pass
        holder.kill()
    with FileLock(tmp_path / "lock", timeout_s=5.0):
        pass
