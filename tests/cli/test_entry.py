"""How the command fails: one sentence on stderr, or one JSON document, and the exit code of its kind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.agents import Run
from kernel_scientist.agents.cli import entry
from kernel_scientist.agents.cli.knowledge_options import FIRST_USE
from kernel_scientist.agents.cli.places import naming_the_run
from kernel_scientist.agents.cli.reference import command_paths, reference_page
from kernel_scientist.sandbox.errors import SandboxError, UsageError

from .conftest import Command, entry_point
from .recorded import write_run

ROOT = Path(__file__).parent.parent.parent


def test_an_unknown_command_is_refused_with_the_nearest_name(command: Command) -> None:
    done = command("rnu", "matmul")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'run'?" in done.err
    assert len(done.err.splitlines()) == 1


def test_an_unknown_subcommand_is_refused_with_the_nearest_name(command: Command) -> None:
    assert "did you mean 'search'?" in command("knowledge", "serach", "lds").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "no-such-problem"),
        ("run", "matmul", "--max-time", "soon"),
        ("run", "matmul", "--generations", "many"),
        ("run", "matmul", "--set", "models.timout_s=3"),
        ("run", "matmul", "--set", "nothing"),
        ("run", "matmul", "--model", ""),
        ("run", "matmul", "--kernel", "missing.hip"),
        ("run", "matmul", "--target", "toaster"),
        ("bench", "missing.hip", "--problem", "matmul"),
        ("bench", "tiled"),
        ("bench", "tiled", "--problem", "matmul", "--seed", "-1"),
        ("run", "matmul", "--seed", "-1"),
        ("run", "matmul", "--set", "seed=-1"),
        ("run", "matmul", "--max-cost", "inf"),
        ("knowledge", "add", ""),
        ("knowledge", "add", "x", "--tag", ""),
        ("knowledge", "search", ""),
        ("problem", "show", "no-such-problem"),
        ("transcript", "show", "no-such-run"),
        ("knowledge", "search"),
        ("--no-such-option",),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    command: Command, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = command(*arguments)
    assert (done.code, done.out) == (2, ""), done.err
    # On a slow machine a remark on what the wait is for may stand before it.
    *remarks, sentence = done.err.splitlines()
    assert sentence.startswith("kernel-scientist: ")
    assert remarks in ([], [f"{FIRST_USE} ..."], ["getting ready ..."])
    assert not list(tmp_path.iterdir()), "something was left behind"


def test_with_json_a_failure_is_one_document_on_stdout(command: Command) -> None:
    done = command("problem", "show", "matmull", "--json")
    assert (done.code, done.err) == (2, "")
    assert done.json["error"]["exit_code"] == 2
    assert "matmul" in done.json["error"]["message"]


def test_with_json_even_a_wrong_flag_is_one_document_on_stdout(command: Command) -> None:
    done = command("run", "matmul", "--generation", "x", "--json")
    assert (done.code, done.err, done.json["error"]["type"]) == (2, "", "UsageError")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (UsageError("a flag"), 2),
        (SandboxError("no cage"), 5),
        (ValueError("a bug"), 1),
        (KeyboardInterrupt(), 130),
        (PermissionError(13, "Permission denied", "/there"), 2),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> int:
        raise raised

    monkeypatch.setattr(entry.app, "main", fail)
    assert entry.run_command(["doctor"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1


def test_an_error_message_cannot_move_the_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> int:
        raise UsageError("bad name '\x1b[2Jx'\nsecond line")

    monkeypatch.setattr(entry.app, "main", fail)
    entry.run_command(["doctor"])
    assert capsys.readouterr().err == "kernel-scientist: bad name 'x' second line\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    script = f"{' '.join(entry_point())} problem show matmul --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.stdout.splitlines()[0], done.stderr) == ("{", "")


def test_a_reader_that_leaves_in_the_middle_is_no_error(tmp_path: Path) -> None:
    script = f"{' '.join(entry_point())} transcript show --runs-dir {tmp_path}/runs last"
    folder = write_run(tmp_path / "runs")
    lines = (folder / "events.jsonl").read_bytes()
    # More than a pipe holds, so that writing fails and not only the last flush.
    (folder / "events.jsonl").write_bytes(lines * 40)
    done = subprocess.run(
        ["bash", "-c", f"{script} | head -n 1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout.splitlines()[1], done.stderr) == ("0", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_standard_stream_that_is_closed_is_no_error(closed: str) -> None:
    script = f"{' '.join(entry_point())} problem list {closed}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_names_the_run_that_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path)
    (started, *_) = Run(folder).events()

    def fail(**_: object) -> int:
        with naming_the_run(tmp_path) as notice:
            notice(started)
            raise KeyboardInterrupt

    monkeypatch.setattr(entry.app, "main", fail)
    assert entry.run_command(["run", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["path"] == str(folder)
    assert entry.run_command(["run"]) == 130
    assert str(folder) in capsys.readouterr().err


def test_help_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys; from kernel_scientist.agents.cli import main; main(['--help'])\n"
        "heavy = {'autogen_agentchat', 'chromadb', 'numpy', 'pydantic', 'rich', 'openai', 'onnxruntime'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


def test_every_command_explains_itself_and_offers_json() -> None:
    for words, one in command_paths():
        assert one.help, words
        options = {name for parameter in one.params for name in parameter.opts}
        is_group = hasattr(one, "lazy")
        assert is_group or "--json" in options, words


def test_the_command_reference_is_up_to_date() -> None:
    written = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert written == reference_page(), "run 'make docs'"
