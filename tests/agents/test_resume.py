"""A run that was killed, stopped or ended goes on where it was, and pays for nothing twice."""

from __future__ import annotations

import json
import os
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Limits, Run, Session, SessionResult
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.requests import Request
from kernel_scientist.agents.run import LOCK_FILE
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import FileLock
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Hold, Shelf
from .runs import PRICED, PaidModel, cut_copy


def times(constants: Any) -> FakeAnswer:
    return FakeAnswer(time_us=1000.0)


def resume(run: Run, model: PaidModel | None = None, **arguments: Any) -> SessionResult:
    arguments.setdefault("target", FakeTarget(times))
    return Session.resume(run, model=model or PaidModel(), knowledge=Shelf(), **arguments).run()


def outline(run: Run) -> dict[str, Any]:
    """What must be the same however often the run was killed."""
    totals = run.info.totals.model_dump()
    del totals["seconds"]
    candidates = [
        (one.id, one.parent_id, one.slot, one.attempt, one.source, one.verdict, one.finding is not None)
        for one in run.candidates()
    ]
    said = [
        (one.generation, one.agent, one.content.type)
        for one in run.events()
        if isinstance(one, ev.MessageSent)
    ]
    return {"totals": totals, "candidates": candidates, "said": said, "status": run.info.status}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An uninterrupted run of two generations."""
    session = Session(
        "matmul",
        target=FakeTarget(times),
        model=PaidModel(),
        knowledge=Shelf(),
        generations=2,
        experiments=2,
        runs_dir=tmp_path_factory.mktemp("whole"),
        config=PRICED,
    )
    return session.run().run


def _lines(run: Run) -> int:
    return len((run.path / "events.jsonl").read_bytes().splitlines())


def _goes_on_after(whole: Run, folder: Path, lines: int, torn: bytes) -> None:
    killed = cut_copy(whole, folder, lines, torn)
    paid = sum(isinstance(event, ev.ModelCall) for event in killed.events())
    seconds = [0.0, *(e.totals.seconds for e in killed.events() if isinstance(e, ev.GenerationStarted))][-1]
    model = PaidModel()

    result = resume(killed, model)

    assert outline(result.run) == outline(whole)
    assert paid + len(model.calls) == whole.info.totals.model_calls, "nothing recorded is paid for again"
    assert result.run.info.totals.seconds >= seconds
    assert result.run.damaged_lines == 0
    assert not (killed.path / LOCK_FILE).exists()
    seqs = [event.seq for event in result.run.events()]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("part", range(8))
def test_a_killed_run_goes_on_from_any_line_of_its_record(whole: Run, tmp_path: Path, part: int) -> None:
    lines = part * (_lines(whole) - 1) // 7
    _goes_on_after(whole, tmp_path, lines, b'{"seq":999,"time":"2026-' if part % 2 else b"")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_run_goes_on_from_every_line_of_its_record(whole: Run, tmp_path: Path) -> None:
    for lines in range(_lines(whole)):
        _goes_on_after(whole, tmp_path / str(lines), lines, b"")


def test_a_run_killed_again_and_again_pays_each_call_once(whole: Run, tmp_path: Path) -> None:
    """Every sitting gets one more answer on record, and is killed before the next."""
    run, paid = cut_copy(whole, tmp_path, 3), 0
    for sitting in range(whole.info.totals.model_calls):
        line, calls = _one_more_answer(run)
        paid += calls
        run = cut_copy(run, tmp_path / str(sitting), line)
    last = PaidModel()
    resume(run, last)
    assert outline(run) == outline(whole)
    assert (paid, last.calls) == (whole.info.totals.model_calls, [])


def _one_more_answer(run: Run) -> tuple[int, int]:
    """Go on for one answer; the line of the record that holds it, and how many calls that took."""
    lines: list[int] = []

    def fails(request: Request) -> None:
        if model.calls:
            raise RuntimeError("killed here")

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.ModelCall) and event.error is None:
            lines.append(event.seq)

    model = PaidModel(fails)
    resume(run, model, observer=watch)
    return lines[0], len(model.calls)


def test_a_finished_run_is_left_as_it_is(whole: Run) -> None:
    def state() -> dict[str, bytes]:
        return {str(file): file.read_bytes() for file in whole.path.rglob("*") if file.is_file()}

    before, model = state(), PaidModel()
    result = resume(whole, model)
    assert (result.status, result.exit_code) == ("not_improved", 3)
    assert (state(), model.calls) == (before, [])


def test_a_finished_run_given_more_generations_has_them(whole: Run, tmp_path: Path) -> None:
    run = resume(cut_copy(whole, tmp_path, _lines(whole)), generations=3).run
    assert (run.info.generation, run.info.generations, run.info.totals.candidates) == (3, 3, 6)


def test_a_limit_that_stopped_a_run_can_be_raised(hold: Hold) -> None:
    held = hold(script=times, model=PaidModel(), generations=2, limits=Limits(max_evaluations=2))
    run = held.run
    assert (held.result.exit_code, run.info.totals.evaluations) == (4, 2)
    record = (run.path / "events.jsonl").read_bytes()

    with pytest.raises(UsageError, match=r"2 of 2 evaluations are used; raise it with --max-evaluations"):
        resume(run)
    assert (run.path / "events.jsonl").read_bytes() == record
    result = resume(run, limits=Limits(max_evaluations=6))

    assert (result.status, run.info.totals.evaluations) == ("not_improved", 6)
    assert run.info.config["limits"]["max_evaluations"] == 6
    assert [one.finding is not None for one in run.candidates()[1:]] == [True] * 6


def test_a_cost_limit_counts_what_was_paid_before(whole: Run, tmp_path: Path) -> None:
    spent = whole.info.totals.cost_usd
    assert spent is not None and spent > 0
    run = cut_copy(whole, tmp_path, _lines(whole) // 2)
    result = resume(run, limits=Limits(max_cost_usd=0.75 * spent))
    assert result.status == "limit"
    cost = run.info.totals.cost_usd
    assert cost is not None and cost < 0.75 * spent + 0.0013


def test_a_run_at_work_is_not_taken_over(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 5)
    with FileLock(run.path / LOCK_FILE), pytest.raises(UsageError, match=f"process {os.getpid()}; wait"):
        resume(run)


def _edit(run: Run, **changes: object) -> None:
    file = run.path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"problem_key": "0"}, "The problem matmul .* has changed since run"),
        ({"kernel_key": "0"}, r"The starting kernel .* has changed .*the run's copy is .*0000/kernel\.hip"),
        ({"device": "another"}, r"measured on fake \(another\), and here is fake"),
        ({"models": {"selector": "gpt"}}, "asked model gpt for its selector, and here that is paid"),
    ],
)
def test_what_figures_depend_on_must_be_as_it_was(
    whole: Run, tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    run = cut_copy(whole, tmp_path, 9)
    _edit(run, **change)
    record = (run.path / "events.jsonl").read_bytes()
    with pytest.raises(UsageError, match=sentence):
        resume(run)
    assert (run.path / "events.jsonl").read_bytes() == record
    assert run.info.status == "interrupted"


def _prompts(folder: Path, words: str) -> Path:
    bundled = resources.files("kernel_scientist.agents") / "prompts" / "coder.md"
    folder.mkdir(exist_ok=True)
    (folder / "coder.md").write_text(bundled.read_text(encoding="utf-8") + words)
    return folder


def test_a_prompt_that_has_changed_is_told_by_its_hash_and_recorded(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 9)
    before = run.info.prompts
    folder = _prompts(tmp_path / "prompts", "Be brief.\n")

    resume(run, prompts=folder)

    after = run.info.prompts
    assert {name for name in after if after[name] != before[name]} == {"coder"}
    (resumed,) = [event for event in run.events() if isinstance(event, ev.RunResumed)]
    said = f"its hash is {after['coder'][:12]}, and was {before['coder'][:12]}"
    assert [note for note in resumed.notes if "coder" in note and said in note]
    assert said in (run.path / "report.md").read_text()


def test_prompts_that_are_gone_are_a_sentence_and_others_can_be_given(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, 9)
    resume(run, prompts=_prompts(tmp_path / "prompts", "Be brief.\n"), limits=Limits(max_evaluations=1))
    shutil.rmtree(tmp_path / "prompts")

    with pytest.raises(UsageError, match=r"--prompts .*prompts: is not a folder"):
        resume(run, limits=Limits(max_evaluations=100))
    again = _prompts(tmp_path / "others", "Be brief.\n")
    assert resume(run, prompts=again, limits=Limits(max_evaluations=100)).status == "not_improved"


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"limits": 5}},
        {"config": {"limits": [1]}},
        {"prices": {"paid": 3}},
        {"prices": {"paid": {"input": -1}}},
    ],
)
def test_a_damaged_configuration_in_a_run_is_a_sentence(
    whole: Run, tmp_path: Path, change: dict[str, object]
) -> None:
    run = cut_copy(whole, tmp_path, 9)
    _edit(run, **change)
    with pytest.raises(UsageError, match="does not fit this version"):
        resume(run)


def test_a_run_of_a_target_from_a_script_asks_for_it_again(whole: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'fake'"):
        resume(cut_copy(whole, tmp_path, 9), target=None)


def test_a_kernel_gone_from_the_run_is_a_sentence(whole: Run, tmp_path: Path) -> None:
    run = cut_copy(whole, tmp_path, _lines(whole) - 1)
    (run.path / "candidates" / "0002" / "kernel.hip").unlink()
    with pytest.raises(UsageError, match=r"0002/kernel\.hip: cannot be read"):
        resume(run)


def test_a_record_that_is_torn_from_the_first_line_on_is_begun_again(whole: Run, tmp_path: Path) -> None:
    _goes_on_after(whole, tmp_path, 0, b'{"seq":1,"ti')
