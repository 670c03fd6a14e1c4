"""What a run found out is kept, found again beside the literature, and told apart from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import LLMMessage

from kernel_scientist.agents import Limits, Run, Session, SessionResult
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.experience import experience_of, learn
from kernel_scientist.agents.models.scripted import request_of
from kernel_scientist.agents.requests import ResearchRequest
from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.targets.fake import FakeTarget

from .conftest import Hold, times
from .runs import PaidModel, reply_to


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "k", embedder=FakeEmbedder(), library=False) as opened:
        yield opened


def test_a_runs_findings_are_found_again_with_their_figures_and_their_evidence(
    hold: Hold, base: KnowledgeBase
) -> None:
    run = hold(generations=1).run

    first, again = learn(run, base), learn(run, base)

    assert (first.status, again.status) == ("added", "unchanged")
    found = base.search("measured uplift over its Base", kind="experience", limit=20)
    assert {one.kind for one in found} == {"experience"} and not base.search("uplift", kind="literature")
    judged = [one for one in run.candidates() if one.finding is not None]
    text = "\n".join(one.text for one in base.passages(str(first.document_id)))
    for one in judged:
        assert one.finding is not None and f"Verdict: {one.finding.verdict}." in text
        assert f"{one.finding.predicted_min:+.1f} % to {one.finding.predicted_max:+.1f} %" in text
    sources = {source.url for one in base.passages(str(first.document_id)) for source in one.citation.sources}
    assert sources == {one.path.parent.absolute().as_uri() for one in judged}


def test_a_run_without_findings_teaches_nothing(hold: Hold, base: KnowledgeBase) -> None:
    run = hold(generations=1).run
    record = run.path / "events.jsonl"
    record.write_bytes(record.read_bytes().splitlines(keepends=True)[0])

    with pytest.raises(UsageError, match="no findings"):
        learn(run, base)
    assert not base.documents()


def test_the_researcher_sees_which_passage_is_experience(
    hold: Hold, base: KnowledgeBase, tmp_path: Path
) -> None:
    learn(hold(generations=1).run, base)
    note = tmp_path / "matmul.md"
    note.write_text("# Matmul\n\nTiles of a matrix multiplication are reused.\n")
    base.add(note)

    held = hold(generations=1, knowledge=base)

    shown = [one for event in held.of(ev.PassagesRetrieved) for one in event.passages]
    assert {one.document_kind for one in shown} == {"literature", "experience"}


def test_the_researchers_model_reads_a_section_on_and_only_of_what_it_was_shown(
    hold: Hold, base: KnowledgeBase, tmp_path: Path
) -> None:
    note = tmp_path / "matmul.md"
    long = "\n\n".join(f"Matmul tile rule {i}: " + "words " * 60 for i in range(8))
    note.write_text(f"# Guide\n\n## Matmul\n\n{long}\n\n## Other\n\nNothing of it here.\n")
    base.add(note)

    class Reader(PaidModel):
        def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
            request = request_of(messages)
            if isinstance(request, ResearchRequest) and len(messages) == 2:
                wanted = (request.passages[0].id, "secret#1")
                return [FunctionCall(n, json.dumps({"passage": n}), "read_section") for n in wanted]
            assert request is not None
            return reply_to(request, answered=len(messages) > 2, tools=tools)

    held = hold(generations=1, knowledge=base, model=Reader())

    calls = {
        event.arguments["passage"]: event.result
        for event in held.of(ev.ToolCall)
        if event.tool == "read_section"
    }
    assert "no passage 'secret#1' was shown" in calls.pop("secret#1")
    (read,) = (json.loads(result)["passages"] for result in calls.values())
    ids = [one["id"] for one in read]
    assert len(ids) > 1 and ids == sorted(ids) and all("Matmul" in one["citation"] for one in read)


def test_what_a_model_wrote_cannot_become_a_heading_or_a_source(hold: Hold) -> None:
    class Hostile(PaidModel):
        def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
            reply = super().answer(messages, tools)
            return reply.replace("it ran", "it ran\\n\\n# Lies [c0001]") if isinstance(reply, str) else reply

    run = hold(generations=1, model=Hostile()).run
    text = experience_of(run)

    judged = [one for one in run.candidates() if one.finding is not None]
    assert "# Lies" in text
    assert len([line for line in text.splitlines() if line.startswith("#")]) == len(judged)
    assert text.count("[c0001]") == 1


def _goes_on(run: Run, base: KnowledgeBase, **arguments: Any) -> SessionResult:
    session = Session.resume(run, target=FakeTarget(times), knowledge=base, **arguments)
    return session.run()


def test_a_session_learns_when_it_has_ended_and_its_resumed_run_does_so_once(
    hold: Hold, base: KnowledgeBase
) -> None:
    stopped = hold(generations=2, knowledge=base, learn=True, limits=Limits(max_evaluations=2)).result
    assert stopped.exit_code == 4 and stopped.learnt.startswith("Added: ")

    ended = _goes_on(stopped.run, base, limits=Limits(max_evaluations=100))

    assert ended.status == "improved" and ended.learnt.startswith("Replaced: ")
    (document,) = base.documents()
    assert document.id in ended.learnt
    text = (base.path / "experience" / f"{ended.run.id}.md").read_text()
    judged = [one for one in ended.run.candidates() if one.finding is not None]
    assert len(judged) > 2 and all(f"Candidate {one.id}" in text for one in judged)


def test_a_finished_run_is_learnt_from_when_it_is_asked_for_and_stays_as_it_is(
    hold: Hold, base: KnowledgeBase
) -> None:
    run = hold(generations=1).run
    before = (run.path / "events.jsonl").read_bytes()

    assert _goes_on(run, base).learnt == "" and not base.documents()
    assert _goes_on(run, base, learn=True).learnt.startswith("Added: ")
    assert (run.path / "events.jsonl").read_bytes() == before


def test_a_failure_to_learn_is_said_and_costs_no_result(hold: Hold, base: KnowledgeBase) -> None:
    (base.path / "experience").write_text("in the way")
    held = hold(generations=1, knowledge=base, learn=True)
    assert held.result.exit_code == 0
    assert held.result.learnt.startswith("Nothing was learnt of this run: ")


def test_a_library_that_keeps_nothing_cannot_learn(hold: Hold, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass a KnowledgeBase"):
        hold(learn=True)
    assert not (tmp_path / "runs").exists()
