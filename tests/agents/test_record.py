"""A record by byte offsets: the same events as the run's, each fetched again, with what its turn is about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel_scientist.agents import Run
from kernel_scientist.agents.transcript.beneath import open_beneath, read_beneath
from kernel_scientist.agents.transcript.opened import OpenedRun

from ..cli.recorded import write_run
from .conftest import Hold


def test_the_record_holds_the_runs_events_and_fetches_each_again(hold: Hold) -> None:
    run = hold(generations=1).run
    opened = OpenedRun.of(run)
    events = list(run.events())
    assert list(opened.record.events(opened.record.entries)) == events
    assert [opened.record.event(event.seq) for event in events] == events
    assert opened.record.event(len(events) + 1) is None


def test_the_calls_of_a_turn_are_about_its_candidate(hold: Hold) -> None:
    opened = OpenedRun.of(hold(generations=2).run)
    calls = [one for one in opened.record.entries if one.kind == "model_call"]
    by_agent = {
        agent: {len(one.candidates) for one in calls if one.agent == agent}
        for agent in ("coder", "benchmarker")
    }
    assert by_agent == {"coder": {1}, "benchmarker": {1}}
    made = {name for one in calls if one.agent == "coder" for name in one.candidates}
    assert made == {name for name in opened.summary.candidates if name != "0000"}


def test_what_a_run_amounts_to_agrees_with_its_candidates_and_its_totals(hold: Hold) -> None:
    run = hold(generations=2).run
    opened = OpenedRun.of(run)
    for one in run.candidates():
        row = opened.summary.candidates[one.id]
        assert (row.parent_id, row.verdict, row.experiment) == (one.parent_id, one.verdict, one.experiment)
        assert one.evaluation is not None and row.speedup == one.evaluation.speedup
        assert (row.finding_seq is None) == (one.finding is None)
    totals = run.info.totals
    assert sum(call.prompt_tokens for call in opened.summary.calls) == totals.prompt_tokens
    assert opened.best_id == (run.info.best.candidate_id if run.info.best else None)


def test_only_what_was_appended_is_read_again(tmp_path: Path) -> None:
    run = Run(write_run(tmp_path / "runs", finished=False))
    opened = OpenedRun.of(run)
    before = len(opened.record.entries)
    assert opened.record.refresh() == 0
    line = (run.path / "events.jsonl").read_bytes().splitlines(keepends=True)[-1]
    with (run.path / "events.jsonl").open("ab", buffering=0) as record:
        record.write(line[:10])
        assert (opened.record.refresh(), opened.record.unfinished) == (0, True)
        record.write(line[10:] + b"\x00\xff\n" + line)
    assert (opened.record.refresh(), opened.record.unfinished, opened.record.damaged) == (2, False, 1)
    assert len(opened.record.entries) == before + 2


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/../../secret", "link", "linked/x", "", "folder", "pipe", "\0"]
)
def test_nothing_but_regular_files_beneath_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "linked").symlink_to(tmp_path)
    (tmp_path / "x").write_text("x")
    os.mkfifo(inside / "pipe")
    with pytest.raises(OSError):
        open_beneath(inside, name)


def test_a_file_beneath_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert read_beneath(tmp_path, "a/b", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4"):
        read_beneath(tmp_path, "a/b", 4)
