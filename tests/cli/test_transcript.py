"""Reading a recorded run: everything is told, every figure names its event, nothing moves the cursor."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.agents.cli import main
from kernel_scientist.agents.cli.text import clean

from .conftest import Command, entry_point
from .recorded import HOSTILE, RUN_ID, write_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "runs")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``transcript show`` prints of the recorded run."""
    folder = write_run(tmp_path_factory.mktemp("story") / "runs")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["transcript", "show", str(folder)]) == 0
    return printed.getvalue()


def test_the_transcript_shows_the_four_agents_in_turn(command: Command, folder: Path) -> None:
    done = command("transcript", "show", "last")
    assert done.code == 0, done.err
    places = [done.out.index(f"\n{agent} [#") for agent in ("Selector", "Researcher", "Coder", "Benchmarker")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "expected",
    [
        "lds-banks#2: LDS notes, Banks\n        https://example.org/lds, looked up 2026-12-01\n",
        "cites lds-banks#2: LDS notes, § Banks",
        "what came of each strategy",
        "which passage moved which experiment",
        "0002 +221.0 % [#19]",
        "+TILE = 32",
        "-TILE = 16",
        "compile_error",
        "kernel.hip:7: error",
        "3.21x (3.10x to 3.32x at 99 %)",
        "10.0 % (flops)",
        "m=64 n=64 k=32",
        "812 µs",
        "100 + 20 tokens",
        "+221.0 %",
        "predicted +5 % to +40 %",
    ],
)
def test_the_transcript_tells_citations_diffs_verdicts_and_times(story: str, expected: str) -> None:
    assert expected in story


def test_every_event_that_is_named_is_in_the_record(command: Command, folder: Path) -> None:
    shown = command("transcript", "show").out
    named = {int(number) for number in re.findall(r"\[#(\d+)\]", shown)}
    recorded = {json.loads(line)["seq"] for line in (folder / "events.jsonl").read_text().splitlines()}
    assert len(named) > 10
    assert named <= recorded


@pytest.mark.parametrize("arguments", [("show",), ("tail", "--no-follow", "-n", "1000"), ("list",)])
def test_hostile_text_is_shown_without_its_control_characters(
    command: Command, folder: Path, arguments: tuple[str, ...]
) -> None:
    done = command("transcript", *arguments)
    assert done.code == 0
    assert clean(done.out) == done.out
    if arguments[0] == "show":
        assert "hidden" in done.out


def test_diffs_can_be_left_out_and_one_generation_chosen(command: Command, folder: Path) -> None:
    assert "+TILE" not in command("transcript", "show", "--no-diff").out
    only = command("transcript", "show", "--generation", "1").out
    assert "Selector" in only
    assert "the outcome" not in only


def test_a_run_is_named_by_prefix_id_or_path(command: Command, folder: Path) -> None:
    outputs = {command("transcript", "show", name).out for name in ("last", RUN_ID[:10], RUN_ID, folder)}
    assert len(outputs) <= 2  # by path the folder is shown as given


def test_the_outcome_is_told_with_paths_and_the_next_command(command: Command, folder: Path) -> None:
    told = command("transcript", "show").out
    for expected in (
        "matmul: 3.21x (3.10x to 3.32x at 99 %) over the starting kernel, confirmed in fresh pairs [#",
        f"runs/{RUN_ID}/best/kernel.hip",
        f"runs/{RUN_ID}/events.jsonl",
        "start: mm<16>",
        "best: mm<16>",
        "predict nothing for an",
        "10.0 % of this CPU's speed of light",
        "kernel-scientist bench",
    ):
        assert expected in told


def test_json_holds_the_run_and_its_events(command: Command, folder: Path) -> None:
    shown = command("transcript", "show", "--json").json
    assert shown["run"]["id"] == RUN_ID
    assert [event["seq"] for event in shown["events"]] == list(range(1, len(shown["events"]) + 1))


def test_runs_are_listed_with_status_and_best(command: Command, folder: Path) -> None:
    listed = command("transcript", "list")
    assert RUN_ID in listed.out
    assert "improved" in listed.out
    assert "3.21x" in listed.out
    assert command("transcript", "list", "--json").json[0]["best"]["candidate_id"] == "0002"


def test_an_empty_folder_of_runs_is_not_an_error(command: Command) -> None:
    done = command("transcript", "list")
    assert (done.code, done.out) == (0, "")
    assert "kernel-scientist run" in done.err


def test_a_half_written_last_line_is_passed_over_and_said(command: Command, folder: Path) -> None:
    with (folder / "events.jsonl").open("a") as lines:
        lines.write('{"kind": "message", "se')
    done = command("transcript", "show")
    assert done.code == 0
    assert "1 damaged line" in done.err


@pytest.mark.parametrize(
    "arguments",
    [("show", "--generation", "99"), ("show", "--generation", "-1"), ("tail", "-n", "-5"),
     ("list", "--runs-dir", "file")],
)  # fmt: skip
def test_a_generation_a_count_or_a_place_that_cannot_be_is_refused(
    command: Command, folder: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    done = command("transcript", *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


def test_one_damaged_run_does_not_hide_the_others(command: Command, folder: Path) -> None:
    for name, file in (("20250101-broken", "run.json"), ("20250102-halved", "events.jsonl")):
        (folder.parent / name).mkdir()
        (folder.parent / name / file).touch()
    done = command("transcript", "list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == [
        "20250101-broken", "20250102-halved", RUN_ID,
    ]  # fmt: skip
    assert done.out.count("damaged") == 2
    assert len(done.err.splitlines()) == 3  # one a damaged run, and how to open one
    states = [one["status"] for one in command("transcript", "list", "--json").json]
    assert states == ["damaged", "damaged", "improved"]


def test_what_is_missing_of_a_run_is_told(command: Command, folder: Path) -> None:
    (folder / "candidates" / "0001" / "kernel.hip").unlink()
    assert "0001/kernel.hip is missing" in command("transcript", "show").err
    (folder / "events.jsonl").write_bytes(bytes(range(256)) * 4)
    for arguments in (("show",), ("tail", "--no-follow")):
        assert "damaged lines of" in command("transcript", *arguments).err
    (folder / "events.jsonl").unlink()
    assert "is missing" in command("transcript", "show").err


def test_tail_ends_when_the_process_of_the_run_is_gone(command: Command, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", finished=False)
    (folder / "running.lock").touch()
    done = command("transcript", "tail")
    assert done.code == 0
    assert "the process is gone" in done.err
    assert "interrupted (the process is gone)" in command("transcript", "list").out


def test_tail_follows_a_run_until_it_has_finished(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", finished=False)
    finished = write_run(tmp_path / "other")
    follower = subprocess.Popen(
        [*entry_point(), "transcript", "tail", "-n", "1"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert follower.stdout is not None
        follower.stdout.readline()
        time.sleep(0.2)
        assert follower.poll() is None
        whole = (finished / "events.jsonl").read_text().splitlines(keepends=True)
        there = len((folder / "events.jsonl").read_text().splitlines())
        with (folder / "events.jsonl").open("a") as lines:
            lines.writelines(whole[there:])
        rest, _ = follower.communicate(timeout=60)
        assert "run finished (improved)" in rest
        assert follower.returncode == 0
    finally:
        follower.kill()
        follower.wait()


@pytest.mark.parametrize(
    ("filters", "seqs"),
    [
        (("--agent", "selector"), {5, 6}),
        (("--kind", "candidate_created"), {2, 12, 16}),
        (("--candidate", "0001"), {11, 12, 13, 14, 15}),
        (("--verdict", "compile_error"), {11, 12, 13, 14, 15}),
        (("--agent", "coder", "--candidate", "0002"), {17}),
    ],
)
def test_events_are_filtered(
    folder: Path, capsys: pytest.CaptureFixture[str], filters: tuple[str, ...], seqs: set[int]
) -> None:
    assert main(["transcript", "show", str(folder), "--json", *filters]) == 0
    assert {event["seq"] for event in json.loads(capsys.readouterr().out)["events"]} == seqs


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (("--agent", "boss"), "it has benchmarker, coder, researcher, selector"),
        (("--candidate", "0042"), "it has 0000, 0001, 0002"),
        (("--verdict", "accepted", "--agent", "selector", "--candidate", "0002"), "all of these filters"),
    ],
)
def test_a_filter_that_nothing_meets_says_what_there_is(
    folder: Path, capsys: pytest.CaptureFixture[str], filters: tuple[str, ...], told: str
) -> None:
    assert main(["transcript", "show", str(folder), *filters]) == 2
    assert told in capsys.readouterr().err


def test_code_prints_a_candidate_or_its_change(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> str:
        assert main(["transcript", "code", str(folder), *arguments]) == 0
        return capsys.readouterr().out

    assert printed() == "TILE = 32\n" == printed("2") == printed("0002")
    assert printed("0002", "--diff").splitlines()[-2:] == ["-TILE = 16", "+TILE = 32"]
    assert "--- 0001/kernel.hip" in printed("0002", "--against", "0001")
    assert json.loads(printed("0001", "--json"))["source"] == f"TILE = {HOSTILE}\n"


@pytest.mark.parametrize("arguments", [("0009",), ("0000", "--diff"), ("0002", "--against", "x")])
def test_code_that_is_not_there_is_said(folder: Path, arguments: tuple[str, ...]) -> None:
    assert main(["transcript", "code", str(folder), *arguments]) == 2


def test_search_looks_into_all_runs_and_sources(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--runs-dir", str(tmp_path / "runs")]

    def hits(*words: str) -> list[tuple[int, str]]:
        assert main(["transcript", "search", *words, "--json", *where]) == 0
        return [(hit["seq"], hit["field"]) for hit in json.loads(capsys.readouterr().out)["hits"]]

    assert hits("32 BANKS") == [(8, "text")]
    assert hits("tile", "=", "16") == [(2, "source"), (12, "diff"), (16, "diff")]
    assert hits("larger", "tiles", "--agent", "benchmarker") == [(19, "tried")]
    assert hits("not", "there", "at", "all") == []
    assert main(["transcript", "search", "tile", "--limit", "1", *where]) == 0
    assert "more than 1" in capsys.readouterr().err


def test_the_schema_describes_every_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transcript", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    known = set(schema["discriminator"]["mapping"])
    assert {json.loads(line)["kind"] for line in (folder / "events.jsonl").read_text().splitlines()} <= known


def test_the_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    served = subprocess.Popen(
        [*entry_point(), "transcript", "view", "last", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert served.stdout is not None
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(served.stdout.readline())
        address = json.loads("".join(lines))["url"]
        assert address.startswith("http://127.0.0.1:") and address.endswith(f"#/runs/{RUN_ID}")
        with urllib.request.urlopen(address.partition("#")[0], timeout=20) as answer:
            assert b"kernel-scientist" in answer.read()
        served.send_signal(signal.SIGINT)
        served.communicate(timeout=60)
        assert served.returncode == 0
    finally:
        served.kill()
        served.wait()


def test_resuming_a_run_whose_limits_are_no_table_is_a_sentence(command: Command, folder: Path) -> None:
    file = folder / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "config": {"limits": 5}}))
    done = command("resume", "last")
    assert (done.code, done.out) == (2, "")
    assert "does not fit this version: 'limits'" in done.err


Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def called(folder: Path, capsys: pytest.CaptureFixture[str]) -> Called:
    """``transcript`` in this process: its exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["transcript", *arguments, "--runs-dir", str(folder.parent)])
        return code, *capsys.readouterr()

    return call


def test_the_models_own_reasoning_is_shown(called: Called, folder: Path) -> None:
    record = folder / "events.jsonl"
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    for one in lines:
        if one["kind"] == "model_call":
            thought = f"Banks clash, so padding helps.{HOSTILE}"
            one["response"] = {"content": "so be it", "thought": thought}
    record.write_text("".join(json.dumps(one) + "\n" for one in lines))
    _, shown, _ = called("show")
    assert "the model's own reasoning:" in shown and "| Banks clash, so padding helps." in shown
    assert clean(shown) == shown


def test_what_is_cut_says_how_much_there_is_more(called: Called, folder: Path) -> None:
    with (folder / "events.jsonl").open("a") as record:
        for seq, text in ((90, "line\n" * 900), (91, "x" * 9_000)):
            content = {"type": "stopped", "agent": "coder", "reason": text}
            event = {"kind": "message", "seq": seq, "time": "2026-01-02T03:04:05Z", "agent": "coder"}
            record.write(json.dumps({**event, "content": content, "text": text}) + "\n")
    _, shown, _ = called("show")
    assert "(700 more lines)" in shown and "8500 more characters" in shown
    _, values, _ = called("show", "--json")
    assert json.loads(values)["events"][-1]["text"] == "x" * 9_000


def test_a_lane_is_chosen(called: Called, folder: Path) -> None:
    record = folder / "events.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line.replace('"lane":0', f'"lane":{n % 3}') for n, line in enumerate(lines)))
    _, values, _ = called("show", "--lane", "2", "--json")
    assert {event["lane"] for event in json.loads(values)["events"]} == {2}
    code, _, told = called("show", "--lane", "7")
    assert code == 2 and "it has 0, 1, 2" in told


@pytest.mark.parametrize(
    "arguments",
    [("show",), ("tail", "--no-follow"), ("tail",), ("code", "last", "2"), ("search", "tiles")],
)
def test_a_damaged_run_json_leaves_the_record_readable(
    called: Called, folder: Path, arguments: tuple[str, ...]
) -> None:
    (folder / "run.json").write_text('{"id": "x", "sta')
    code, out, err = called(*arguments)
    assert (code, bool(out)) == (0, True), err
    if arguments == ("show",):
        values = json.loads(called("show", "--json")[1])
        assert values["run"] is None and "is damaged" in values["faults"][0] and len(values["events"]) > 10


@pytest.mark.parametrize(
    "arguments",
    [("list",), ("show",), ("tail", "--no-follow"), ("code", "last", "0001"), ("search", "tile")],
)
def test_json_is_json_only_also_on_failure(called: Called, arguments: tuple[str, ...]) -> None:
    code, out, _ = called(*arguments, "--json")
    assert code == 0
    lines = out.splitlines() if arguments[0] == "tail" else [out]
    assert lines and all(json.loads(line) is not None for line in lines)
    if arguments[0] in ("show", "tail", "code"):
        code, out, _ = called(arguments[0], "nosuch", "--json")
        assert code == 2 and "nosuch" in json.dumps(json.loads(out))


def test_an_export_has_one_form_and_says_what_is_missing(called: Called, tmp_path: Path) -> None:
    nowhere = tmp_path / "none" / "run.html"
    for arguments, said in (
        (("--html", "--csv"), "--html and --csv are different forms"),
        (("-o", str(nowhere)), f"the folder {nowhere.parent} does not exist"),
    ):
        code, out, err = called("export", *arguments)
        assert (code, out) == (2, "") and said in err


def test_a_number_that_is_none_is_told_in_words(called: Called) -> None:
    code, _, err = called("show", "--generation", "x")
    assert code == 2 and "'x' is not a whole number" in err
