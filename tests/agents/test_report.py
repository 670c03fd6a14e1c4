"""``report.md``: there after every end, every figure with its event, foreign text as text."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.agents import Config, Limits, load_config
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import ModelsConfig
from kernel_scientist.agents.markdown import code, plain
from kernel_scientist.agents.report import report_text
from kernel_scientist.agents.report_facts import collect_facts
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.targets.fake import FakeAnswer

from .conftest import Hold


def test_a_run_ends_with_a_report_whose_figures_name_their_events(hold: Hold) -> None:
    held = hold(generations=2)
    text = (held.run.path / "report.md").read_text()

    for title in ("Question", "Method", "What was tried and why", "What worked", "What did not work", "Cost"):
        assert f"\n## {title}\n" in text
    (confirmed,) = held.of(ev.ComparisonFinished)
    best = held.result.best
    assert best is not None
    assert f"{best.speedup.value:.2f}x ({best.speedup.low:.2f}x to " in text.split("## Question")[0]
    assert f"confirmed in fresh pairs (#{confirmed.seq})" in text
    kinds = {event.seq: event for event in held.events}
    rows = re.findall(
        r"^\| \[(\d{4})\].*\| ([+-][\d.]+) % \(#(\d+)\) \| ([\d.]+)x .*\(#(\d+)\) \|$", text, re.M
    )
    assert len(rows) == 6
    for name, uplift, said, speedup, judged in rows:
        finding, evaluation = kinds[int(said)], kinds[int(judged)]
        assert isinstance(finding, ev.MessageSent) and isinstance(evaluation, ev.EvaluationFinished)
        assert evaluation.candidate_id == name
        assert f"{finding.content.measured_uplift:+.1f}" == uplift  # type: ignore[union-attr]
        assert f"{evaluation.evaluation.speedup.value:.2f}" == speedup  # type: ignore[union-attr]
    assert all(int(seq) in kinds for seq in re.findall(r"#(\d+)", re.sub(r"`[^`]*`", "", text)))


def test_every_link_of_a_report_leads_to_a_file(hold: Hold) -> None:
    run = hold(generations=2).run
    links = re.findall(r"\]\(([^)]+)\)", (run.path / "report.md").read_text())
    assert len(links) > 10
    assert all((run.path / link).is_file() for link in links)


def test_what_was_cited_is_listed_with_its_source(hold: Hold) -> None:
    held = hold(generations=1)
    text = (held.run.path / "report.md").read_text()
    assert "- `tiles#1`: A guide, Memory, p. 7; https\\://example.org/guide (#" in text


def test_failures_are_reported_with_their_evidence(hold: Hold) -> None:
    def script(constants: dict[str, object]) -> FakeAnswer:
        if constants["THREAD_N"] != 1:
            return FakeAnswer(verdict=Verdict.COMPILE_ERROR, message="kernel.hip:9: error: <b>|*no*\n# x")
        return FakeAnswer(time_us=1000.0 / float(constants["THREAD_M"]))  # type: ignore[arg-type]

    text = (hold(script=script, generations=2).run.path / "report.md").read_text()
    assert re.search(r"compile_error \(#\d+\): kernel.hip:9: error: \\<b\\>\\\|\\\*no\\\*$", text, re.M)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(max_evaluations=3), "A limit stopped the run; it can be resumed."),
        (Limits(max_time_s=1e-9), "A limit stopped the run; it can be resumed."),
    ],
)
def test_a_run_stopped_by_a_limit_has_its_report_too(hold: Hold, limits: Limits, said: str) -> None:
    text = (hold(generations=9, limits=limits).run.path / "report.md").read_text()
    assert said in text


def test_the_commands_to_reproduce_it_are_whole_words_of_a_shell(hold: Hold) -> None:
    run = hold(generations=1).run
    (line,) = re.findall(r"^    (kernel-scientist bench .*)$", report_text(run), re.M)
    words = shlex.split(line)
    assert (run.path / words[2]).is_file()
    assert words[3:5] == ["--problem", "matmul"]
    facts = collect_facts(run)
    assert facts.lineage(facts.candidates[-1])[0].id == "0000"


def test_the_command_that_repeats_a_run_has_all_that_shaped_it(hold: Hold) -> None:
    given = Config(
        generations=1,
        experiments=2,
        lanes=2,
        limits=Limits(max_time_s=600),
        models=ModelsConfig.model_validate(
            {"coder": {"temperature": 0.5}, "prices": {"a.b": {"input": 1, "output": 2}}}
        ),
    )
    run = hold(config=given).run
    (line,) = re.findall(r"^    (kernel-scientist run .*)$", report_text(run), re.M)
    words = shlex.split(line)
    sets = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    told = load_config(environ={}, folder=run.path, sets=sets)

    assert words[2] == "matmul" and words[words.index("--experiments") + 1] == "2"
    assert (run.path / words[words.index("--kernel") + 1]).is_file()
    assert (told.lanes, told.limits, told.models) == (2, given.limits, given.models)


def test_one_of_a_kind_is_told_as_one(hold: Hold) -> None:
    text = report_text(hold(generations=1, experiments=1).run)
    assert "1 evaluation of 1 candidate, " in text and "1 evaluations" not in text


@given(st.text())
def test_no_text_whatever_is_more_than_text_in_markdown(text: str) -> None:
    shown = plain(text)
    assert "\n" not in shown and "\x1b" not in shown
    bare = re.sub(r"\\.", "", shown)
    assert not re.search(r"[`*_\[\]<>|~&$@#!]|://|(?i:www\.)", bare)
    assert not re.match(r"[-+=]|\d+[.)]", shown)


@given(st.text(alphabet=st.sampled_from("`|ab \n\\")))
def test_a_code_span_holds_whatever_it_is_given(text: str) -> None:
    shown = code(text)
    fence = re.match(r"`+", shown)
    assert fence is not None and shown.endswith(fence[0]) and "\n" not in shown
    inner = shown[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall(r"`+", inner)
