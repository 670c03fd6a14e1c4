"""Every fault of an endpoint at each of the four agents: got over where it passes, else an end in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from kernel_scientist.agents import Limits
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import Price, RepairConfig, SearchConfig
from kernel_scientist.agents.messages import Finding, StepFailed
from kernel_scientist.sandbox.errors import UsageError

from .conftest import Held, Hold
from .openai_server import Answer, Cut, Hang, Raw, Refuse, Say, serve
from .test_openai import _fenced, _request, config, good

AGENTS = {"select": "selector", "research": "researcher", "code": "coder", "benchmark": "benchmarker"}

Script = Callable[[dict[str, Any]], Answer]


def once_each(fault: Callable[[dict[str, Any]], Answer]) -> Script:
    """A model of good replies whose first answer to each agent is `fault`."""
    seen: set[str] = set()

    def script(body: dict[str, Any]) -> Answer:
        asked = str(_request(body)["request"])
        if asked in seen:
            return good(body)
        seen.add(asked)
        return fault(body)

    return script


def _nested(_body: dict[str, Any]) -> Answer:
    return Raw(b'{"choices": ' + b"[" * 100_000)


PASSING: dict[str, tuple[Callable[[dict[str, Any]], Answer], str]] = {
    "429": (lambda body: Refuse(429, "slow down", retry_after="0.01"), "asks to go slower"),
    "429 without a wait": (lambda body: Refuse(429, "slow down"), "asks to go slower"),
    "500": (lambda body: Refuse(500, "oops"), "500: oops"),
    "502 with a page": (
        lambda body: Raw(b"<html>bad gateway</html>", "text/html", 502),
        "502: an error page",
    ),
    "503 with nothing": (lambda body: Raw(b"", "text/plain", 503), "failed (503)"),
    "529": (lambda body: Raw(b'{"error": "overloaded"}', status=529), "529: overloaded"),
    "dropped at once": (lambda body: Cut(good_say(body), 0.0), "endpoint"),
    "dropped half way": (lambda body: Cut(good_say(body), 0.5), "endpoint"),
    "nothing in time": (lambda body: Hang(), "no answer within 1 s"),
    "a page": (lambda body: Raw(b"<html>sign in</html>", "text/html"), "is not an OpenAI chat completion"),
    "text": (lambda body: Raw(b"OK", "text/plain"), "is not an OpenAI chat completion"),
    "an image": (lambda body: Raw(bytes(range(256)), "image/png"), "endpoint"),
    "no body": (lambda body: Raw(b""), "is not an OpenAI chat completion"),
    "no JSON": (lambda body: Raw(b'{"choices": [{"mess'), "is not an OpenAI chat completion"),
    "another object": (lambda body: Raw(b'{"result": "ok"}'), "is not an OpenAI chat completion"),
    "no message": (lambda body: Raw(b'{"choices": [{"text": "hi"}]}'), "is not an OpenAI chat completion"),
    "a call that is none": (
        lambda body: Raw(b'{"choices": [{"message": {"tool_calls": ["run"]}}]}'),
        "is not an OpenAI chat completion",
    ),
    "deeply nested": (_nested, "is not an OpenAI chat completion"),
}
STREAMED = (
    "429",
    "500",
    "dropped at once",
    "dropped half way",
    "nothing in time",
    "a page",
    "no body",
    "text",
)


def good_say(body: dict[str, Any]) -> Say:
    return good(body)


@pytest.mark.parametrize(
    ("kind", "stream"),
    [*((kind, False) for kind in PASSING), *((kind, True) for kind in STREAMED)],
    ids=lambda value: value if isinstance(value, str) else ("streamed" if value else "plain"),
)
def test_a_fault_that_passes_is_got_over_at_each_of_the_four_agents(
    hold: Hold, kind: str, stream: bool
) -> None:
    fault, said = PASSING[kind]
    patience = 1.0 if kind == "nothing in time" else 20.0
    with serve(once_each(fault)) as server:
        settings = config(server.url, stream=stream, timeout_s=patience, tries=6)
        held = hold(config=settings, generations=1, experiments=1)

    assert held.result.status == "improved"
    failed = [call for call in held.of(ev.ModelCall) if call.error]
    assert {call.agent for call in failed} == set(AGENTS.values())
    for call in failed:
        assert said in call.error, call.error
        for internal in ("object has no", "attribute", "Traceback", "subscriptable", "0x"):
            assert internal not in call.error
    assert held.run.info.totals.model_calls == len(held.of(ev.ModelCall))
    assert not held.contents(StepFailed)
    assert list(held.run.events()) == held.events


def _events(*lines: str) -> Answer:
    return Raw("".join(f"{line}\n\n" for line in lines).encode(), "text/event-stream")


def _piece(**delta: Any) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': None}]})}"


BROKEN_STREAMS: dict[str, tuple[Callable[[dict[str, Any]], Answer], str]] = {
    "an error in it": (
        lambda body: _events(_piece(content="I"), 'data: {"error": {"message": "overloaded"}}'),
        "overloaded",
    ),
    "an error as its first event": (
        lambda body: _events('event: error\ndata: {"error": {"message": "no slot"}}'),
        "no slot",
    ),
    "no end": (lambda body: _events(_piece(content="I"), _piece(content=" th")), "ended before"),
    "only its end": (lambda body: _events("data: [DONE]"), "ended before"),
    "only signs of life": (lambda body: _events(*[": ping"] * 50), "ended before"),
    "a chunk that is no JSON": (lambda body: _events("data: {not"), "is not an OpenAI chat completion"),
    "a chunk that is a list": (lambda body: _events("data: [1]", "data: [DONE]"), "endpoint"),
    "choices that are none": (lambda body: _events('data: {"choices": 7}', "data: [DONE]"), "ended before"),
    "a call that is none": (
        lambda body: _events(_piece(tool_calls=["run"]), "data: [DONE]"),
        "is not an OpenAI chat completion",
    ),
    "bytes that are no text": (lambda body: Raw(b"data: \xff\xfe\x00\n\n", "text/event-stream"), "endpoint"),
    "a whole answer, and not a stream": (lambda body: Raw(b'{"choices": []}'), "ended before"),
    "a stall half way": (lambda body: Hang(good_say(body)), "no answer within 1 s"),
}


def in_turn(faults: Sequence[Callable[[dict[str, Any]], Answer]]) -> Script:
    """A model of good replies that gives each agent all of `faults` first, one after the other."""
    left = {agent: list(faults) for agent in AGENTS}

    def script(body: dict[str, Any]) -> Answer:
        rest = left[str(_request(body)["request"])]
        return rest.pop(0)(body) if rest else good(body)

    return script


@pytest.mark.parametrize("faults", [PASSING, BROKEN_STREAMS], ids=["answers", "streams"])
@pytest.mark.slow
def test_all_faults_of_a_stream_one_after_another_are_got_over_at_each_agent(
    hold: Hold, faults: dict[str, tuple[Callable[[dict[str, Any]], Answer], str]]
) -> None:
    kinds = [fault for fault, _ in faults.values()]
    with serve(in_turn(kinds)) as server:
        settings = config(server.url, stream=True, timeout_s=1.0, tries=100, retry_wait_s=0.0)
        held = hold(config=settings, generations=1, experiments=1)
    assert held.result.status == "improved" and not held.contents(StepFailed)
    for agent in AGENTS.values():
        said = [call.error for call in held.of(ev.ModelCall) if call.agent == agent and call.error]
        assert len(said) == len(kinds)
        for sentence in said:
            for internal in ("object has no", "attribute", "Traceback", "subscriptable", "0x"):
                assert internal not in sentence
        if faults is BROKEN_STREAMS:
            for sentence, (_, expected) in zip(said, faults.values(), strict=True):
                assert expected in sentence


def _unfenced(text: str) -> str:
    return text.replace("```json\n", "").replace("\n```", "")


READABLE: dict[str, Callable[[str], str]] = {
    "no fence": _unfenced,
    "another fence": lambda text: text.replace("```json", "```"),
    "a tilde of prose": lambda text: f"Sure! Here {{as asked}} it is:\n\n{text}\n\nLet me know.",
    "a trailing comma": lambda text: text.replace("}\n```", ",}\n```", 1),
    "an upper-case fence": lambda text: text.replace("```json", "```JSON"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "thoughts first": lambda text: f"<think>\nA {{first}} thought: ```json\n{{}}\n```\n</think>\n{text}",
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("kind", READABLE)
def test_an_answer_that_is_right_in_another_form_needs_no_repair(hold: Hold, kind: str, stream: bool) -> None:
    def script(body: dict[str, Any]) -> Say:
        say = good(body)
        return Say(READABLE[kind](say.text), say.calls) if say.text else say

    with serve(script) as server:
        held = hold(config=config(server.url, stream=stream), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert not [call for call in held.of(ev.ModelCall) if "repair" in call.purpose]
    thoughts = [call.response.get("thought", "") for call in held.of(ev.ModelCall)]
    assert any("first" in one for one in thoughts) == (kind == "thoughts first")


def _cut_off(body: dict[str, Any]) -> Say:
    text = good(body).text or _fenced({"tried": "more work, and then"})
    return Say(text[: len(text) // 2], finish="length")


REPAIRED: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "empty": lambda body: Say(""),
    "blank": lambda body: Say(" \n\t"),
    "refused": lambda body: Say(message={"refusal": "I'm sorry, I can't assist with that."}),
    "filtered": lambda body: Say("", finish="content_filter"),
    "cut off": _cut_off,
    "a wrong tool": lambda body: Say(calls=(("rm -rf / #", '{"path": "/"}'),)),
    "a tool without a name": lambda body: Say(calls=(("", "{}"),)),
    "broken arguments": lambda body: Say(calls=(("evaluate_kernel", '{"candidate_id": '),)),
    "wrong arguments": lambda body: Say(calls=(("evaluate_kernel", '{"id": [1]}'),)),
    "arguments that are none": lambda body: Say(calls=(("search_literature", "42"),)),
    "calls without end": lambda body: Say(calls=tuple([("search_literature", "{}")] * 300)),
    "another form": lambda body: Say(_fenced({"answer": 42})),
    "an array": lambda body: Say('["base_id", "0000"]'),
}


@pytest.mark.parametrize("kind", REPAIRED)
def test_an_answer_that_cannot_be_used_is_asked_for_again_at_each_agent(hold: Hold, kind: str) -> None:
    with serve(once_each(REPAIRED[kind])) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert not held.contents(StepFailed)
    calls = [call for call in held.of(ev.ModelCall) if not call.error]
    for agent in AGENTS.values():
        assert len([call for call in calls if call.agent == agent]) >= 2, agent
    # What goes back to a service must be in the form it wants.
    for request in server.requests:
        for message in request["messages"]:
            for call in message.get("tool_calls") or ():
                assert call["id"] and call["function"]["name"].replace("-", "_").isidentifier()
                assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_all_unusable_answers_streamed_one_after_another_are_mended_at_each_agent(hold: Hold) -> None:
    kinds = list(REPAIRED.values())
    with serve(in_turn(kinds)) as server:
        settings = config(server.url, stream=True).replaced({"repairs": RepairConfig(reply=len(kinds))})
        held = hold(config=settings, generations=1, experiments=1)
    assert held.result.status == "improved" and not held.contents(StepFailed)
    for agent in AGENTS.values():
        answered = [call for call in held.of(ev.ModelCall) if call.agent == agent and not call.error]
        assert len(answered) > len(kinds)


def test_a_cut_off_answer_is_asked_for_again_in_fewer_words(hold: Hold) -> None:
    with serve(once_each(_cut_off)) as server:
        hold(config=config(server.url), generations=1, experiments=1)
    complaints = [request["messages"][-1]["content"] for request in server.requests]
    assert sum("cut off" in str(one) and "be briefer" in str(one) for one in complaints) >= 2


FATAL: dict[str, tuple[Refuse, int, str]] = {
    "key revoked": (Refuse(401, "Invalid key", "invalid_api_key"), 2, "refused the key"),
    "no quota": (Refuse(429, "You exceeded your quota", "insufficient_quota"), 2, "quota is used up"),
    "unpaid": (Refuse(402, "Insufficient balance"), 2, "quota is used up"),
    "model withdrawn": (Refuse(404, "The model does not exist", "model_not_found"), 2, "has no model"),
    "dead": (Refuse(503, "down for good"), 5, "down for good"),
    "asks for hours": (Refuse(429, "daily limit", retry_after="7200"), 5, "above models.longest_wait_s"),
}


def _late(body: dict[str, Any], agent: str) -> bool:
    """Whether this is a question to `agent` after the first generation."""
    request = _request(body)
    return request["request"] == agent and request["generation"] > 1


@pytest.mark.parametrize(
    ("agent", "stream"),
    [
        ("select", False),
        pytest.param("research", True, marks=pytest.mark.slow),
        pytest.param("code", False, marks=pytest.mark.slow),
        pytest.param("benchmark", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", FATAL)
def test_an_endpoint_that_gives_out_leaves_what_was_found_confirmed(
    hold: Hold, kind: str, agent: str, stream: bool
) -> None:
    fault, code, said = FATAL[kind]
    with serve(lambda body: fault if _late(body, agent) else good(body)) as server:
        # The good model repeats itself, which would spare the others a question.
        again = config(server.url, stream=stream).replaced({"search": SearchConfig(close_in_meaning=2)})
        held = hold(config=again, generations=5, experiments=1)
    assert (held.result.status, held.result.exit_code) == ("failed", code)
    assert said in held.result.stop_reason
    assert held.result.best is not None and held.result.best.comparison is not None
    info = held.run.info
    assert info.status == "failed" and info.exit_code == code and info.best is not None
    assert (held.run.path / info.best.path).is_file()
    assert held.of(ev.RunFinished) == [held.events[-1]]
    tries = sum(_late(request, agent) for request in server.requests)
    assert tries == (6 if kind == "dead" else 1)


def test_a_wait_that_is_asked_for_is_kept_and_told(hold: Hold) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    waits = ["0.2", later, "soon", "-5"]

    def script(body: dict[str, Any]) -> Answer:
        return Refuse(429, "slow down", retry_after=waits.pop(0)) if waits else good(body)

    with serve(script) as server:
        held = hold(config=config(server.url, tries=9), generations=1, experiments=1)
    failed = [call for call in held.of(ev.ModelCall) if call.error]
    assert len(failed) == 4 and "; waiting 0.2 s" in failed[0].error
    assert all("; waiting 0." in call.error or "; waiting 1." in call.error for call in failed)
    times = [event.time for event in held.of(ev.ModelCall)]
    assert (times[1] - times[0]).total_seconds() >= 0.2


def test_a_wait_ends_with_the_time_limit(hold: Hold) -> None:
    with serve(lambda body: Refuse(429, "slow down", retry_after="3000")) as server:
        held = hold(config=config(server.url, tries=9), limits=Limits(max_time_s=2), generations=1)
    assert (held.result.status, held.result.exit_code) == ("limit", 4)
    assert len(server.requests) == 1


def test_every_try_counts_and_what_may_be_billed_with_its_prompt(hold: Hold) -> None:
    prices = {"good-model": Price(input=1.0, output=2.0)}
    with serve(once_each(lambda body: Cut(good_say(body)))) as server:
        held = hold(config=config(server.url, prices=prices), generations=1, experiments=1)
    failed = [call for call in held.of(ev.ModelCall) if call.error]
    assert all(call.usage.estimated and call.usage.prompt_tokens > 100 for call in failed)
    assert all(call.cost_usd and call.cost_usd > 0 for call in failed)
    with serve(once_each(lambda body: Refuse(500, "oops"))) as server:
        refused = hold(config=config(server.url, prices=prices), generations=1, experiments=1)
    assert {call.cost_usd for call in refused.of(ev.ModelCall) if call.error} == {0.0}
    totals = held.run.info.totals
    assert totals.cost_usd == pytest.approx(sum(call.cost_usd for call in held.of(ev.ModelCall)))
    assert totals.prompt_tokens == sum(call.usage.prompt_tokens for call in held.of(ev.ModelCall))


@pytest.mark.parametrize(
    "fault", [None, Cut(Say("x" * 400)), Say("no use")], ids=["good", "dropped", "useless"]
)
@pytest.mark.parametrize("limit", ["tokens", "cost"])
def test_a_run_ends_within_one_call_of_its_limit_and_keeps_everything(
    hold: Hold, limit: str, fault: Answer | None
) -> None:
    limits = Limits(max_tokens=900) if limit == "tokens" else Limits(max_cost_usd=0.0009)
    prices = {"good-model": Price(input=1.0, output=1.0)}
    with serve(once_each(lambda body: fault or good(body))) as server:
        held = hold(config=config(server.url, prices=prices), limits=limits, generations=50)
    assert (held.result.status, held.result.exit_code) == ("limit", 4)
    calls = held.of(ev.ModelCall)
    used = [call.usage.total_tokens for call in calls]
    assert sum(used) >= 900 and sum(used[:-1]) < 900
    assert held.run.info.totals.model_calls == len(calls) == len(server.requests)
    assert len(held.of(ev.LimitReached)) == 1
    if held.contents(Finding):
        assert held.result.best is not None


def _agents_asked(held: Held) -> set[str]:
    return {call.agent for call in held.of(ev.ModelCall)}


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"temperature": 0.3}, "temperature"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"max_output_tokens": 99_000}, "max_output_tokens"),
    ],
)
def test_a_setting_that_the_model_refuses_stops_at_once_and_is_named(
    hold: Hold, settings: dict[str, Any], key: str
) -> None:
    name = "max_tokens" if key == "max_output_tokens" else key

    def picky(body: dict[str, Any]) -> Answer:
        return Refuse(400, f"Unsupported value: '{name}'", param=name) if name in body else good(body)

    with serve(picky) as server, pytest.raises(UsageError, match=rf"refuses the setting models\.{key}"):
        hold(config=config(server.url, **settings))
    assert len(server.requests) == 1
