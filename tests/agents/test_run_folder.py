"""Run folders read back: names, damage, events of every kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernel_scientist.agents import Run, list_runs
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import GenerationTask
from kernel_scientist.agents.recorder import Recorder, new_run_folder
from kernel_scientist.agents.run import LOCK_FILE, PROCESS_GONE
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import FileLock
from kernel_scientist.tools.evaluation import Comparison, Evaluation, Interval, ShapeTiming, Verdict

from .conftest import Hold

EVALUATION = Evaluation(
    Verdict.ACCEPTED,
    "",
    "screen",
    "cpu",
    "a CPU",
    "bubblewrap",
    "k0",
    "k1",
    timings=(ShapeTiming({"m": 1}, 1.5, 1.0, float("inf"), 3, 4, speedup=Interval(2.0, 1.5, 2.5, 0.99)),),
    speedup=Interval(2.0, 1.5, 2.5, 0.99),
    notes=("a note",),
    seconds={"compile": 0.1},
)
COMPARISON = Comparison(
    EVALUATION, EVALUATION, EVALUATION.timings, Interval(1.0, 0.0, float("inf"), 0.99), "none"
)
NOW = datetime(2026, 12, 1, tzinfo=UTC)
USAGE = ev.Usage(prompt_tokens=1, completion_tokens=2)

EVENTS: list[ev.Event] = [
    ev.RunStarted(
        seq=1,
        time=NOW,
        run_id="r",
        problem="p",
        kernel="k",
        target="cpu",
        models={"coder": "m"},
        generations=1,
        experiments=3,
        limits={"max_tokens": None},
        versions={"python": "3"},
    ),
    ev.RunResumed(
        seq=16,
        time=NOW,
        run_id="r",
        sitting=2,
        generations=1,
        interrupted=(1,),
        limits={"max_tokens": None},
        versions={"python": "3"},
        totals=ev.Totals(),
    ),
    ev.StopRequested(seq=17, time=NOW, lane=2, reason="interrupted", grace_s=10.0),
    ev.GenerationStarted(seq=2, time=NOW, generations=1, best_id="0000", totals=ev.Totals()),
    ev.SpeakerSelected(seq=3, time=NOW, agent="coder", slot=1, attempt=2),
    ev.MessageSent(
        seq=4,
        time=NOW,
        agent="manager",
        text="t",
        content=GenerationTask(generation=1, generations=1, experiments=1, build_repairs=1, result_repairs=1),
    ),
    ev.ModelCall(
        seq=5,
        time=NOW,
        agent="coder",
        purpose="code",
        model="m",
        usage=USAGE,
        seconds=0.1,
        request=({"type": "UserMessage", "content": "x"},),
        response={"content": "y"},
    ),
    ev.ContextCut(seq=20, time=NOW, agent="coder", window=8_000, cut=("digest", "passages")),
    ev.ToolCall(seq=6, time=NOW, agent="a", tool="t", arguments={"x": 1}, result="r", seconds=0.0),
    ev.PassagesRetrieved(
        seq=7, time=NOW, agent="a", query="q", passages=(ev.CitedPassage(id="d#1", title="D", page=3),)
    ),
    ev.CandidateCreated(seq=8, time=NOW, candidate_id="0001", path="candidates/0001/kernel.hip", key="k"),
    ev.EvaluationStarted(seq=9, time=NOW, candidate_id="0001", tier="screen"),
    ev.EvaluationFinished(seq=10, time=NOW, candidate_id="0001", evaluation=EVALUATION, seconds=1.0),
    ev.ComparisonFinished(
        seq=11, time=NOW, a_id="0000", b_id="0001", comparison=COMPARISON, improved=False, seconds=1.0
    ),
    ev.BestChanged(
        seq=12,
        time=NOW,
        candidate_id="0001",
        previous_id="0000",
        speedup=Interval(2.0, 1.5, 2.5, 0.99),
        tier="screen",
    ),
    ev.LimitReached(seq=13, time=NOW, limit="max_tokens", used=5, maximum=4, sentence="s"),
    ev.ErrorRecorded(seq=14, time=NOW, where="coder", message="m", recovered=True),
    ev.RunFinished(
        seq=15,
        time=NOW,
        status="improved",
        stop_reason="done",
        exit_code=0,
        totals=ev.Totals(),
        best_id="0001",
    ),
]


def test_every_kind_of_event_is_tried_here() -> None:
    kinds = {kind.model_fields["kind"].default for kind in ev.Event.__origin__.__args__}  # type: ignore[attr-defined]
    assert {event.kind for event in EVENTS} == kinds


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_survives_its_line_of_json(event: ev.Event) -> None:
    line = event.model_dump_json()
    assert "\n" not in line
    assert ev.parse_event(line) == event


def test_an_event_of_a_newer_version_with_more_fields_is_still_read() -> None:
    line = EVENTS[4].model_dump_json()[:-1] + ',"mood":"good"}'
    assert ev.parse_event(line) == EVENTS[4]


def test_a_damaged_tail_costs_only_the_damaged_line(hold: Hold) -> None:
    held = hold(generations=1)
    lines = held.run.path / "events.jsonl"
    whole = lines.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in (last + 1, last + 40, len(whole) - 1):
        lines.write_bytes(whole[:cut])
        run = Run(held.run.path)
        assert list(run.events()) == held.events[:-1]
        assert run.damaged_lines == 1
        assert len(run.candidates()) == 4
    lines.write_bytes(whole[:200] + b"\x00\xff garbage\n" + whole)
    assert len(list(Run(held.run.path).events())) >= len(held.events) - 1


def test_a_run_is_named_by_last_id_prefix_suffix_or_path(hold: Hold) -> None:
    first, second = hold(generations=1).run, hold(generations=1).run
    runs = first.path.parent
    assert [run.id for run in list_runs(runs)] == [first.id, second.id]
    names = ["last", second.id, second.id[:-2], second.id.rpartition("_")[2], str(second.path)]
    assert {Run.open(name, runs_dir=runs).id for name in names} == {second.id}
    with pytest.raises(UsageError, match="names 2 runs"):
        Run.open("2", runs_dir=runs)
    with pytest.raises(UsageError, match="no run 'nope'"):
        Run.open("nope", runs_dir=runs)


def test_an_empty_place_has_no_last_run(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    with pytest.raises(UsageError, match="no run in"):
        Run.open("last", runs_dir=tmp_path)


def test_a_damaged_run_file_is_a_usage_error_that_names_it(hold: Hold) -> None:
    run = hold(generations=1).run
    (run.path / "run.json").write_text('{"id": 1')
    with pytest.raises(UsageError, match=r"run\.json"):
        _ = run.info


def test_damaged_runs_are_listed_and_say_what_is_wrong(hold: Hold) -> None:
    run = hold(generations=1).run
    run_file, record = run.path / "run.json", run.path / "events.jsonl"
    assert (run.damage, run.record_faults(), run.missing_files()) == ("", [], [])
    run.candidates()[1].path.unlink()
    (missing,) = run.missing_files()
    assert "candidates/0001/kernel.hip is missing" in missing
    record.write_bytes(b"")
    assert "is empty" in run.record_faults()[0]
    record.unlink()
    assert "is missing" in run.record_faults()[0]
    run_file.write_text("{")
    assert "is damaged: " in run.damage
    run_file.unlink()
    record.touch()
    assert "run.json: is missing" in run.damage
    assert [one.id for one in list_runs(run.path.parent)] == [run.id]


def test_a_run_whose_process_was_killed_is_interrupted(hold: Hold) -> None:
    seen: list[str] = []

    def look(event: ev.Event) -> None:
        if isinstance(event, ev.GenerationStarted):
            seen.append(Run.open("last", runs_dir=runs).info.status)

    runs = hold(generations=1).run.path.parent
    run = hold(generations=1, observer=look).run
    assert seen == ["running"]
    assert not (run.path / LOCK_FILE).exists()
    file = run.path / "run.json"
    file.write_text(file.read_text().replace('"improved"', '"running"'))
    assert run.info.status == "running", "without a lock file nothing is known"
    (run.path / LOCK_FILE).touch()
    assert (run.info.status, run.info.stop_reason) == ("interrupted", PROCESS_GONE)
    with FileLock(run.path / LOCK_FILE):
        assert run.info.status == "running"


def test_runs_are_not_looked_for_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a folder"):
        list_runs(tmp_path / "file")


def test_a_secret_is_blotted_out_of_everything_written(tmp_path: Path) -> None:
    recorder = Recorder(new_run_folder(tmp_path, "a problem/.."), secrets=['sk-"quoted"-key'])
    recorder.emit(ev.ErrorRecorded, where="x", message='it was sk-"quoted"-key', recovered=True)
    recorder.close()
    (event,) = Run(recorder.folder).events()
    assert isinstance(event, ev.ErrorRecorded) and event.message == "it was [key]"
    assert recorder.folder.parent == tmp_path


def test_files_are_there_before_the_event_that_names_them(hold: Hold, tmp_path: Path) -> None:
    missing: list[str] = []

    def look(event: ev.Event) -> None:
        (run,) = (tmp_path / "runs").iterdir()
        if isinstance(event, ev.CandidateCreated) and not (run / event.path).is_file():
            missing.append(event.path)
        if isinstance(event, ev.EvaluationFinished):
            stored = run / "candidates" / event.candidate_id / "evaluation.json"
            if not stored.is_file():
                missing.append(str(stored))

    held = hold(generations=1, observer=look)
    assert held.result.exit_code == 0 and not missing


@pytest.mark.parametrize("file", ["run.json", "events.jsonl", "candidates/0000/kernel.hip"])
def test_a_pipe_or_a_device_in_a_run_is_not_waited_for(file: str, hold: Hold) -> None:
    run = hold(generations=1).run
    readers: dict[str, Callable[[], object]] = {
        "run.json": lambda: run.info,
        "events.jsonl": lambda: list(run.events()),
        "candidates/0000/kernel.hip": run.candidates()[0].recorded_source,
    }
    (run.path / file).unlink()
    os.mkfifo(run.path / file)
    with pytest.raises(UsageError, match="not a regular file"):
        readers[file]()
    (run.path / file).unlink()
    (run.path / file).symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="not a regular file"):
        readers[file]()


@pytest.mark.parametrize("field", ["problem", "problem_path", "kernel", "target"])
def test_a_path_in_a_run_that_can_be_none_is_damage(field: str, hold: Hold) -> None:
    run = hold(generations=1).run
    values = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**values, field: "a\0b"}))
    assert f"is damaged at '{field}'" in run.damage
