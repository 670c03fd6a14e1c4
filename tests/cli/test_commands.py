"""The commands that need no session: doctor, problem, knowledge."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command


def test_doctor_says_what_is_there(command: Command) -> None:
    done = command("doctor", "--json")
    states = {one["name"]: one["state"] for one in done.json["findings"]}
    assert done.code == (0 if done.json["usable"] else 5)
    assert states["python"] == "ok"
    assert {"cpu compiler", "gfx942 compiler", "cage", "device", "knowledge", "models"} <= states.keys()


def test_doctor_without_a_compiler_is_exit_code_5(command: Command) -> None:
    done = command("doctor", env={"KERNEL_SCIENTIST_TOOLCHAIN": "rocm", "ROCM_PATH": "/nowhere"})
    if "cpu compiler     ok" in done.out:
        pytest.skip("this machine has a ROCm compiler")
    assert done.code == 5
    assert "cpu compiler     unusable" in done.out
    assert "pip install" in done.out


def test_doctor_reports_a_home_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = command("doctor", "--json", env={"KERNEL_SCIENTIST_HOME": str(tmp_path / "file" / "home")})
    states = {one["name"]: one["state"] for one in done.json["findings"]}
    assert (done.code, states["data folder"]) == (5, "unusable")


def test_problems_are_listed_with_their_starting_kernels(command: Command) -> None:
    done = command("problem", "list", "--json")
    assert {"matmul", "softmax", "rmsnorm", "transpose", "reduce_sum", "fp8_gemm"} <= {
        one["name"] for one in done.json
    }
    assert all(one["kernels"] for one in done.json)


def test_a_problem_is_shown_with_buffers_shapes_and_kernels(command: Command) -> None:
    done = command("problem", "show", "matmul")
    assert done.code == 0
    for expected in ("float32", "m x k", "benchmark", "rtol", "tiled"):
        assert expected in done.out


def test_a_sound_problem_passes_its_check(command: Command) -> None:
    done = command("problem", "check", "transpose")
    assert done.code == 0, done.out + done.err


def test_literature_is_added_listed_and_found(command: Command, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text(
        "# Quokka scheduling\n\nA quokka kernel keeps its wavefronts in a marsupial ring buffer.\n"
    )
    added = command("knowledge", "add", note, tmp_path / "missing.md", "--tag", "zoo", "--json")
    assert added.code == 6
    assert {item["status"] for item in added.json["items"]} == {"added", "failed"}
    listed = command("knowledge", "list")
    assert "Quokka scheduling" in listed.out
    found = command("knowledge", "search", "quokka", "ring", "buffer", "--limit", "3")
    assert found.code == 0
    assert "marsupial" in found.out
    assert "note.md" in found.out
