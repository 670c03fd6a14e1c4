"""The commands with another machine as target, as people type them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..tools.conftest import write_problem
from .server import USER, SshServer


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(*arguments: str | Path, cwd: Path) -> Done:
    argv = [sys.executable, "-P", "-m", "kernel_scientist.agents.cli", *map(str, arguments)]
    done = subprocess.run(
        argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_doctor_looks_at_another_machine(ssh: SshServer, tmp_path: Path) -> None:
    done = command("doctor", "--target", ssh.url(), "--json", cwd=tmp_path)
    findings = {one["name"]: one for one in done.json["findings"]}
    assert done.code == (0 if done.json["usable"] else 5), done.err
    assert findings["connection"]["detail"].startswith(f"{ssh.url()} answers through ")
    assert str(ssh.home) in findings["program"]["detail"]
    assert {"cpu compiler", "cage", "device", "data folder"} <= findings.keys()
    assert not {"knowledge", "models", "runs"} & findings.keys()


def test_doctor_shows_what_to_do_where_packages_are_missing(ssh: SshServer, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    done = command("doctor", "--target", ssh.url(python=str(python)), cwd=tmp_path)
    assert done.code == 5
    assert "packages    unusable" in done.out
    assert "what to do: run there `" in done.out


@pytest.mark.parametrize(
    "arguments", [("--install",), ("--target", "cpu"), ("--target", "ssh://a b"), ("--target", "http://a")]
)
def test_doctor_refuses_what_it_cannot_look_at(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = command("doctor", *arguments, cwd=tmp_path)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


@pytest.mark.slow
def test_bench_judges_a_users_own_problem_there(ssh: SshServer, tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "my problem")
    done = command("bench", "honest", "--problem", problem.folder, "--target", ssh.url(), cwd=tmp_path)
    assert done.code == 0, done.err
    assert f"at {USER}@127.0.0.1" in done.out
    assert "predict nothing for an" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my problem"]


@pytest.mark.slow
def test_compare_measures_two_kernels_there(ssh: SshServer, tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "mine")
    slower = tmp_path / "slower.hip"
    text = problem.default_kernel.read_text()
    slower.write_text(text.replace("__syncthreads();", "for (int k = 0; k < 40; k++) __syncthreads();"))
    target = f"{ssh.url()}?target=cpu"
    words = ("--problem", problem.folder, "--target", target, "--json")
    done = command("compare", "honest", slower, *words, cwd=tmp_path)
    assert done.code == 0, done.err
    comparison = done.json["comparison"]
    assert comparison["speedup"]["high"] < 1.0
    assert {comparison[side]["device"].rpartition(", ")[2] for side in "ab"} == {f"at {USER}@127.0.0.1"}
    assert comparison["b"]["target"] == "cpu"
    slower.write_text(text.replace("2.0f *", "2.5f *"))
    done = command("compare", "honest", slower, *words, cwd=tmp_path)
    assert done.code == 6, done.err
    assert done.json["comparison"]["b"]["verdict"] == "wrong_result"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "slower.hip"]


def test_a_machine_that_cannot_be_reached_is_exit_code_5_and_leaves_nothing(
    ssh: SshServer, tmp_path: Path
) -> None:
    done = command("run", "matmul", "--target", f"ssh://{USER}@127.0.0.1:1", "--json", cwd=tmp_path)
    assert (done.code, done.json["error"]["exit_code"]) == (5, 5)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_whole_session_runs_there(ssh: SshServer, tmp_path: Path) -> None:
    write_problem(tmp_path / "mine")
    done = command(
        "run",
        "mine/",
        "--target",
        ssh.url(),
        "--generations",
        "1",
        "--experiments",
        "2",
        "--json",
        cwd=tmp_path,
    )
    assert done.code in (0, 3), done.err
    (run,) = (tmp_path / "runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert info["target"] == "cpu"
    assert info["device"].endswith(f"at {USER}@127.0.0.1")
    assert info["config"]["target"] == ssh.url()
