"""A run as OpenTelemetry spans, live and afterwards, to a real receiver; its faults disturb nothing."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Run, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.recorder import Recorder
from kernel_scientist.agents.telemetry import otlp
from kernel_scientist.agents.telemetry.config import SpansConfig
from kernel_scientist.agents.telemetry.spans import SpanMaker
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.tools.targets.fake import FakeTarget

from .conftest import Held, Hold, Shelf, times
from .receiver import Receiver, attributes, receiving
from .runs import cut_copy

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra 'otel' is not installed")

KEY = "sk-very-secret-key"
PROSE = "the answer's own words"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def live(hold: Hold, url: str, **options: Any) -> Held:
    return hold(config=Config.model_validate({"otel": {"endpoint": url}}), generations=1, **options)


@dataclass
class Sent:
    """A run that was sent as it went on, and what arrived."""

    run: Run
    events: list[ev.Event]
    receiver: Receiver
    arrived_early: bool


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    events: list[ev.Event] = []
    early: list[bool] = []
    with receiving() as receiver:

        def observe(event: ev.Event) -> None:
            events.append(event)
            if isinstance(event, ev.CandidateCreated) and event.candidate_id == "0001":
                early.append(receiver.arrived.wait(20))

        session = Session(
            "matmul", target=FakeTarget(times), knowledge=Shelf(), observer=observe,
            runs_dir=tmp_path_factory.mktemp("sent") / "runs",
            config=Config.model_validate({"otel": {"endpoint": receiver.url}, "generations": 1}),
        )  # fmt: skip
        yield Sent(session.run().run, events, receiver, early == [True])


def test_a_run_arrives_live_as_spans_with_the_genai_names(sent: Sent) -> None:
    receiver = sent.receiver
    (root,) = receiver.named("invoke_workflow")
    assert root.name == "invoke_workflow matmul" and not root.parent_span_id
    assert attributes(root)["kernel_scientist.run.status"] == sent.run.info.status
    turns = [attributes(span)["gen_ai.agent.name"] for span in receiver.named("invoke_agent")]
    assert turns == [event.agent for event in sent.events if isinstance(event, ev.SpeakerSelected)]
    calls = [event for event in sent.events if isinstance(event, ev.ModelCall)]
    chats = [attributes(span) for span in receiver.named("chat ")]
    assert [one["gen_ai.usage.input_tokens"] for one in chats] == [c.usage.prompt_tokens for c in calls]
    assert [one["gen_ai.usage.output_tokens"] for one in chats] == [c.usage.completion_tokens for c in calls]
    assert {one["gen_ai.request.model"] for one in chats} == {"offline"}
    assert {one["gen_ai.operation.name"] for one in chats} == {"chat"}
    tools = [attributes(span)["gen_ai.tool.name"] for span in receiver.named("execute_tool")]
    assert tools == [event.tool for event in sent.events if isinstance(event, ev.ToolCall)]
    assert {one["service.name"] for one in receiver.resources} == {"kernel-scientist"}
    assert set(receiver.paths) == {"/v1/traces"}


def test_spans_arrive_while_the_run_goes_on(sent: Sent) -> None:
    assert sent.arrived_early


def test_every_span_lies_within_its_parent_of_the_same_trace(sent: Sent) -> None:
    spans = sent.receiver.spans
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert len({span.trace_id for span in spans}) == 1
    for span in spans:
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        if span.parent_span_id:
            assert span.end_time_unix_nano <= by_id[span.parent_span_id].end_time_unix_nano
    parents = {by_id[span.parent_span_id].name.split()[0] for span in sent.receiver.named("chat ")}
    assert parents == {"invoke_agent"}


def test_every_event_of_a_run_is_in_its_spans_once(sent: Sent) -> None:
    spans = sent.receiver.spans
    told = [attributes(span).get("kernel_scientist.seq") for span in spans]
    told += [attributes(one)["kernel_scientist.seq"] for span in spans for one in span.events]
    numbers = sorted(number for number in told if number is not None)
    # What opens and closes the run and ends a turn has no span of its own.
    without = ("run_started", "run_finished", "message")
    assert numbers == [event.seq for event in sent.events if event.kind not in without]


def test_spans_sent_again_are_the_same_spans(sent: Sent, receiver: Receiver) -> None:
    count = otlp.send_run(sent.run.events(), otlp.Collector(receiver.url))
    assert count == len(sent.receiver.spans)
    assert [span.SerializeToString() for span in receiver.spans] == [
        span.SerializeToString() for span in sent.receiver.spans
    ]


def test_a_run_that_was_cut_short_is_sent_as_far_as_it_went(
    sent: Sent, receiver: Receiver, tmp_path: Path
) -> None:
    otlp.send_run(cut_copy(sent.run, tmp_path, 12).events(), otlp.Collector(receiver.url))
    (root,) = receiver.named("invoke_workflow")
    assert attributes(root)["kernel_scientist.unfinished"] is True


def _record(folder: Path, **options: Any) -> Recorder:
    """A record with one call whose request, answer and error hold prose and a key."""
    folder.mkdir()
    recorder = Recorder(folder, secrets=[KEY], **options)
    recorder.emit(
        ev.RunStarted, run_id="r1", problem="matmul", kernel="k.hip", target="cpu", models={}, generations=1,
        experiments=1, limits={}, versions={},
    )  # fmt: skip
    recorder.emit(
        ev.ModelCall, agent="coder", purpose="code", model="openai:good", seconds=1.5,
        usage=ev.Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2, reasoning_tokens=1),
        request=({"type": "UserMessage", "content": f"{PROSE} {KEY}", "source": "manager"},),
        response={"content": f"{PROSE} {KEY}", "finish_reason": "stop", "thought": PROSE},
        error=f"refused: {PROSE} {KEY}",
    )  # fmt: skip
    recorder.emit(
        ev.ToolCall, agent="coder", tool="look", arguments={"query": PROSE}, result=PROSE, is_error=True,
        seconds=0.1,
    )  # fmt: skip
    recorder.emit(ev.ErrorRecorded, where="coder", message=PROSE, recovered=True)
    recorder.emit(ev.RunFinished, status="failed", stop_reason=PROSE, exit_code=2, totals=ev.Totals())
    recorder.close()
    return recorder


@pytest.mark.parametrize("content", [False, True])
def test_keys_are_never_sent_and_prose_only_when_asked_for(
    tmp_path: Path, receiver: Receiver, content: bool
) -> None:
    # Arrange
    spans = otlp.LiveSpans(otlp.Collector(receiver.url), content=content)
    # Act
    _record(tmp_path / "r1", observer=spans.observe)
    spans.close()
    # Assert
    assert len(receiver.spans) == 3
    assert KEY.encode() not in receiver.bodies
    assert (PROSE.encode() in receiver.bodies) is content


def test_a_call_to_an_endpoint_has_the_conventions_attributes(tmp_path: Path, receiver: Receiver) -> None:
    spans = otlp.LiveSpans(otlp.Collector(f"{receiver.url}/"), content=True)
    _record(tmp_path / "r1", observer=spans.observe)
    spans.close()
    (chat,) = receiver.named("chat good")
    found = attributes(chat)
    assert found["gen_ai.provider.name"] == "openai"
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.usage.cache_read.input_tokens"] == 2
    assert found["error.type"] == "model_call_failed" and chat.status.code == chat.status.STATUS_CODE_ERROR
    assert chat.end_time_unix_nano - chat.start_time_unix_nano == 1_500_000_000
    (asked,) = json.loads(found["gen_ai.input.messages"])
    assert asked["role"] == "user" and PROSE in asked["parts"][0]["content"]
    (answered,) = json.loads(found["gen_ai.output.messages"])
    assert [part["type"] for part in answered["parts"]] == ["reasoning", "text"]


def test_a_collector_that_refuses_costs_the_run_one_sentence(
    hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving(status=400) as refusing, caplog.at_level(logging.WARNING, logger=otlp.__name__):
        held = live(hold, refusing.url)
    assert held.result.exit_code in (0, 3)
    (said,) = [one.getMessage() for one in caplog.records if one.name == otlp.__name__]
    assert held.run.id in said and "transcript export" in said


def test_an_absent_collector_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otlp, "CLOSING_S", 0.2)
    with receiving() as gone:
        url = gone.url
    spans = otlp.LiveSpans(otlp.Collector(url))
    # Act: it returns although the exporter would try for longer
    with caplog.at_level(logging.WARNING, logger=otlp.__name__):
        _record(tmp_path / "r1", observer=spans.observe)
        spans.close()
    # Assert
    assert "did not take all spans" in caplog.text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:4318", "no address of a collector"),
        ("http://", "no address of a collector"),
        ("http://localhost:99999", "no address of a collector"),
        ("http://me:secret@localhost:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("ftp://me:secret@localhost:4318", r"'ftp://\[hidden\]"),
    ],
)
def test_a_bad_address_is_refused_before_anything_is_written(
    hold: Hold, tmp_path: Path, url: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        live(hold, url)
    assert not (tmp_path / "runs").exists()


def test_without_opentelemetry_the_message_says_what_to_install(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(UnusableEnvironment, match=r"pip install 'kernel-scientist\[otel\]'"):
        live(hold, "http://localhost:4318")


def test_a_variable_of_the_machine_never_stops_a_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with caplog.at_level(logging.WARNING, logger=otlp.__name__):
        assert otlp.live_spans(SpansConfig()) is None
    assert "pip install 'kernel-scientist[otel]'" in caplog.text


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/own"}, "http://c/own"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_opentelemetrys_own_variables_name_the_collector(
    environ: dict[str, str], expected: str | None
) -> None:
    assert otlp.environment_endpoint(environ) == expected


def test_the_variable_alone_sends_a_run(
    hold: Hold, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    hold(generations=1)
    assert len(receiver.named("invoke_workflow")) == 1


def test_a_second_sitting_is_a_second_root_of_the_same_trace(sent: Sent) -> None:
    # Arrange
    events = list(sent.run.events())
    maker = SpanMaker()
    spans = [span for event in events[:-1] for span in maker.take(event)]
    trace = maker.trace_id
    again = ev.RunResumed(
        seq=len(events), time=events[-1].time, run_id=maker.run_id, sitting=2, generations=2, limits={},
        versions={}, totals=ev.Totals(),
    )  # fmt: skip
    # Act
    spans += maker.take(again)
    spans += maker.close()
    # Assert
    roots = [span for span in spans if span.parent_id is None]
    assert [root.attributes.get("kernel_scientist.run.sitting") for root in roots] == [None, 2]
    assert len({root.id for root in roots}) == 2 and maker.trace_id == trace


def test_a_recorded_run_is_sent_by_the_command(
    sent: Sent, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    from kernel_scientist.agents.cli import main

    assert main(["transcript", "export", str(sent.run.path), "--otlp", receiver.url]) == 0
    assert f"Sent {len(receiver.spans)} spans of run {sent.run.id}" in capsys.readouterr().err


def test_the_command_says_that_a_collector_takes_nothing(
    sent: Sent, capsys: pytest.CaptureFixture[str]
) -> None:
    from kernel_scientist.agents.cli import main

    with receiving(status=404) as refusing:
        assert main(["transcript", "export", str(sent.run.path), "--otlp", refusing.url]) == 5
    assert "does not take the spans" in capsys.readouterr().err
