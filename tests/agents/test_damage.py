"""Damaged records: a run goes on from what can be read, loses nothing, and says what it did."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Run, Session, SessionResult
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.mending import set_aside
from kernel_scientist.agents.messages import Hypotheses
from kernel_scientist.agents.past import Past, read_past
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Shelf
from .runs import PRICED, PaidModel, cut_copy


def times(constants: Any) -> FakeAnswer:
    return FakeAnswer(time_us=1000.0)


def resume(run: Run) -> SessionResult:
    return Session.resume(run, model=PaidModel(), knowledge=Shelf(), target=FakeTarget(times)).run()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    session = Session(
        "matmul", target=FakeTarget(times), model=PaidModel(), knowledge=Shelf(), generations=2,
        experiments=2, runs_dir=tmp_path_factory.mktemp("whole"), config=PRICED,
    )  # fmt: skip
    return session.run().run


def record(run: Run) -> Path:
    return run.path / "events.jsonl"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def aside(run: Run, lines: int = 1) -> tuple[str, ...]:
    past = Past(run, run.info, seq=lines, sittings=1)
    return set_aside(past)


LAST = b'{"seq": 2, "kind": "of a newer version"}\n'


@pytest.mark.parametrize("tail", [b'{"seq": 3', b"\x00" * 5000, b"garbage\n\x00\x00\n", b"x" * 3_000_000])
def test_only_what_is_half_written_is_cut_off_a_record_and_it_is_kept(
    whole: Run, tmp_path: Path, tail: bytes
) -> None:
    run = cut_copy(whole, tmp_path, 0)
    kept = b'{"seq": 1}\nnot an event\n' + LAST
    record(run).write_bytes(kept + tail)

    notes = aside(run)

    assert record(run).read_bytes() == kept
    assert (run.path / "cut" / "sitting-2" / "events.jsonl").read_bytes() == tail
    assert f"{len(tail)} bytes" in " ".join(notes)


def test_a_record_cut_at_any_byte_keeps_every_whole_line_and_every_byte(whole: Run, tmp_path: Path) -> None:
    text = record(whole).read_bytes()
    first = text.index(b"\n") + 1
    ends = [place + 1 for place in range(len(text)) if text[place : place + 1] == b"\n"]
    near = {end + step for end in (*ends[:6], *ends[-6:]) for step in range(-3, 4)}
    places = {place for place in near | set(range(first, len(text), 997)) if first <= place <= len(text)}
    run = cut_copy(whole, tmp_path, 0)
    for place in sorted(places):
        shutil.rmtree(run.path / "cut", ignore_errors=True)
        record(run).write_bytes(text[:place])
        aside(run)
        cut = run.path / "cut" / "sitting-2" / "events.jsonl"
        left = cut.read_bytes() if cut.exists() else b""
        assert record(run).read_bytes() + left == text[:place]
        assert len(left) == place - max(end for end in ends if end <= place)


def _damaged(text: bytes, chance: random.Random) -> bytes:
    """The record with some lines lost, torn, overwritten or doubled, and perhaps its end cut."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(lines))
        ways: list[Callable[[bytes], bytes]] = [
            lambda line: b"",
            lambda line: line[: len(line) // 2],
            lambda line: line[: len(line) // 2] + b"\n",
            lambda line: b"\x00" * len(line) + b"\n",
            lambda line: line + line,
            lambda line: line.replace(b"0001", b"0009").replace(b'"slot":0', b'"slot":-7'),
        ]
        lines[place] = chance.choice(ways)(lines[place])
    damaged = b"".join(lines)
    return damaged[: chance.randrange(len(damaged))] if chance.random() < 0.5 else damaged


def _goes_on_or_says_why_not(whole: Run, folder: Path, seed: int) -> None:
    run = cut_copy(whole, folder, 10**6)
    damaged = _damaged(record(run).read_bytes(), random.Random(seed))
    record(run).write_bytes(damaged)
    kernels = {path: text for path, text in snapshot(run.path).items() if path.endswith("kernel.hip")}
    before = snapshot(run.path)

    try:
        result = resume(run)
    except UsageError as error:
        assert re.search(r"events\.jsonl: .*; (put a copy|start)", str(error)), error
        assert snapshot(run.path) == before
        return

    assert result.status in ("not_improved", "improved")
    now = record(run).read_bytes()
    cut = run.path / "cut"
    whole_lines = damaged[: len(damaged) - sum(one.stat().st_size for one in cut.rglob("events.jsonl"))]
    assert now.startswith(whole_lines)
    assert b"".join(one.read_bytes() for one in cut.rglob("events.jsonl")) == damaged[len(whole_lines) :]
    left = snapshot(run.path).values()
    assert all(text in left for text in kernels.values()), "no kernel is lost"
    seqs = [event.seq for event in run.events()]
    assert seqs[-1] == max(seqs)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_record_is_gone_on_from_or_refused_in_a_sentence(
    whole: Run, tmp_path: Path, seed: int
) -> None:
    _goes_on_or_says_why_not(whole, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_damaged_records_are_gone_on_from_or_refused_in_a_sentence(whole: Run, tmp_path: Path) -> None:
    for seed in range(100, 220):
        _goes_on_or_says_why_not(whole, tmp_path / str(seed), seed)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"\x00" * 4096, "is damaged"),
        (b"not a line\n" * 9, "is damaged"),
        (b'{"seq":1,"time":"garbage"}\n', "is damaged"),
        (b'{"seq":1,"ti', "is damaged"),
        (b"", "is empty"),
        (None, "is missing"),
    ],
)
def test_a_record_without_a_readable_line_is_refused_and_nothing_is_touched(
    whole: Run, tmp_path: Path, text: bytes | None, fault: str
) -> None:
    run = cut_copy(whole, tmp_path, 1)
    record(run).unlink()
    if text is not None:
        record(run).write_bytes(text)
    before = snapshot(run.path)

    with pytest.raises(UsageError, match=rf"events\.jsonl: {fault}.*start anew"):
        resume(run)
    assert snapshot(run.path) == before


def test_a_run_that_had_not_begun_begins(whole: Run, tmp_path: Path) -> None:
    for number, torn in enumerate((None, b"", b'{"seq":1,"ti', b'{"seq":1,"time":"2026-12-01T00:00:00Z"')):
        run = cut_copy(whole, tmp_path / str(number), 0)
        record(run).unlink()
        if torn is not None:
            record(run).write_bytes(torn)
        assert resume(run).status == "not_improved"
        assert [event.seq for event in run.events()][:2] == [1, 2]


def test_candidates_that_the_record_does_not_name_are_kept(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 12)
    named = {one.id for one in run.candidates()}
    kernels = {
        one.name: (one / "kernel.hip").read_text()
        for one in (run.path / "candidates").iterdir()
        if one.name not in named
    }
    assert kernels

    resume(run)

    kept = run.path / "cut" / "sitting-2" / "candidates"
    assert {one.name: (one / "kernel.hip").read_text() for one in kept.iterdir()} == kernels
    (resumed,) = [event for event in run.events() if isinstance(event, ev.RunResumed)]
    assert any(next(iter(kernels)) in note and "cut/sitting-2" in note for note in resumed.notes)


def test_a_candidate_whose_line_is_lost_keeps_its_place_and_its_figures(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 10**6)
    lines = record(run).read_bytes().splitlines(keepends=True)
    lost = [one for one in lines if b'"kind":"candidate_created"' in one and b'"0001"' in one]
    record(run).write_bytes(b"".join(one for one in lines if one not in lost))

    past = read_past(run)

    assert [one.id for one in past.candidates] == [f"{n:04d}" for n in range(len(past.candidates))]
    assert past.candidates[1].verdict == "accepted" and past.candidates[1].source
    assert past.unannounced == ()
    shutil.rmtree(run.path / "candidates" / "0001")
    with pytest.raises(UsageError, match="the line of candidate 0001 is damaged"):
        resume(run)


def test_an_id_far_beyond_the_others_is_a_sentence(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 10**6)
    text = record(run).read_text()
    record(run).write_text(text.replace('"candidate_id":"0002"', '"candidate_id":"999999999"'))
    with pytest.raises(UsageError, match="the line of candidate 000"):
        resume(run)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_record_that_is_no_file_is_a_sentence(
    whole: Run, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    run = cut_copy(whole, tmp_path, 9)
    record(run).unlink()
    make(record(run))
    with pytest.raises(UsageError, match=r"events\.jsonl"):
        resume(run)


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "candidates/../../x", "", "a\x00b"])
def test_a_forged_path_is_no_event(whole: Run, tmp_path: Path, path: str) -> None:
    run = cut_copy(whole, tmp_path, 10**6)
    lines = [json.loads(line) for line in record(run).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "candidate_created" and line["candidate_id"] == "0002":
            line["path"] = path
    record(run).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run.damaged_lines == 1
    assert all(one.path.is_relative_to(run.path / "candidates") for one in run.candidates())


def test_an_experiment_that_is_not_in_the_list_is_no_message() -> None:
    with pytest.raises(ValueError, match="not in the list"):
        Hypotheses.model_validate({"chosen": [{"experiment": 3, "criterion": "x"}]})
