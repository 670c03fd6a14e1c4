"""Sessions against a real HTTP server that speaks the OpenAI protocol, with its faults."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Limits, list_runs
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import ModelsConfig, Price
from kernel_scientist.agents.messages import Finding
from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from .conftest import Hold
from .openai_server import KEY, Cut, Refuse, Say, serve


def good(body: dict[str, Any]) -> Say:
    """A scripted model of good replies: two experiments that double the work of a thread."""
    request = _request(body)
    offered = {tool["function"]["name"] for tool in body.get("tools", [])}
    called = any(message["role"] == "tool" for message in body["messages"])
    if request["request"] == "select":
        best = max(request["population"], key=lambda row: row.get("speedup", 0.0))
        return Say(_fenced({"base_id": best["id"], "reference_id": None, "reasons": "the fastest"}))
    if request["request"] == "research":
        if not called and "search_literature" in offered:
            return Say(calls=(("search_literature", json.dumps({"query": "register tiling"})),))
        now = request["tuning"]["constants"]
        names = [("THREAD_M", 2 * now["THREAD_M"]), ("THREAD_N", 2 * now["THREAD_N"])]
        experiments = [_experiment(name, value) for name, value in names]
        return Say(
            "Here it is.\n"
            + _fenced({"avenues": [{"title": "more work"}], "experiments": experiments, "fewer": "few"})
        )
    if request["request"] == "code":
        name, value = request["experiment"]["rubric"][0].split(" = ")
        old = next(line for line in request["base"]["source"].splitlines() if line.startswith(f"{name} = "))
        new = re.sub(r"= \d+", f"= {value}", old, count=1)
        edit = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
        return Say(f"{_fenced({'report': 'done'})}\n{edit}")
    if not called and "evaluate_kernel" in offered:
        return Say(calls=(("evaluate_kernel", json.dumps({"candidate_id": request["candidate_id"]})),))
    return Say(_fenced({"tried": "more work", "happened": "as measured", "next": "more of it"}))


def _request(body: dict[str, Any]) -> dict[str, Any]:
    text = next(message["content"] for message in body["messages"] if message["role"] == "user")
    found: dict[str, Any] = json.loads(text.split("```json request\n")[1].split("\n```")[0])
    return found


def _experiment(name: str, value: int) -> dict[str, Any]:
    return {
        "description": f"double {name}",
        "rubric": [f"{name} = {value}"],
        "strategy": "register tiling",
        "uplift_min": 5,
        "uplift_max": 80,
        "innovation": 20,
        "citations": ["tiles#1", "invented#9"],
    }


def _fenced(value: object) -> str:
    return f"```json\n{json.dumps(value)}\n```"


def config(url: str, **models: Any) -> Config:
    settings = {"base_url": url, "api_key": KEY, "retry_wait_s": 0.01, "tries": 3, "timeout_s": 20.0}
    return Config(model="good-model", models=ModelsConfig.model_validate({**settings, **models}))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
def test_a_session_with_good_replies_over_http_improves_the_kernel(hold: Hold, stream: bool) -> None:
    with serve(good) as server:
        held = hold(config=config(server.url, stream=stream), generations=2, experiments=2)

    assert held.result.status == "improved"
    calls = held.of(ev.ModelCall)
    assert {call.model for call in calls} == {"openai:good-model"}
    assert all(call.usage.total_tokens == 110 and not call.usage.estimated for call in calls)
    assert len(calls) == len(server.requests)
    assert all(finding.author == "model" for finding in held.contents(Finding))
    streamed = {bool(request.get("stream")) for request in server.requests}
    assert streamed == {stream}


def test_a_citation_of_what_was_never_shown_is_left_out(hold: Hold) -> None:
    with serve(good) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    (candidate,) = held.run.candidates()[1:]
    assert candidate.experiment is not None and candidate.experiment.citations == ("tiles#1",)


def test_the_key_is_in_no_file_of_the_run(hold: Hold) -> None:
    def leaky(body: dict[str, Any]) -> Say:
        say = good(body)
        return Say(f"The key is {KEY}. {say.text}", say.calls) if say.text else say

    with serve(leaky) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert server.keys and set(server.keys) == {f"Bearer {KEY}"}
    for file in held.run.path.rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()


def test_a_price_turns_tokens_into_cost_and_the_cost_limit_stops_the_run(hold: Hold) -> None:
    prices = {"good-model": Price(input=1000.0, output=10_000.0)}
    with serve(good) as server:
        held = hold(config=config(server.url, prices=prices), limits=Limits(max_cost_usd=0.5), generations=9)
    assert held.result.exit_code == 4
    assert {call.cost_usd for call in held.of(ev.ModelCall)} == {0.2}
    assert held.run.info.totals.cost_usd == pytest.approx(0.6)
    assert held.run.info.prices == {"openai:good-model": {"input": 1000.0, "output": 10_000.0}}


def test_a_cost_limit_without_a_price_is_refused_before_anything_is_sent(hold: Hold, tmp_path: Path) -> None:
    with serve(good) as server, pytest.raises(UsageError, match=r"models\.prices\.good-model"):
        hold(config=config(server.url), limits=Limits(max_cost_usd=1.0))
    assert not server.requests and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Refuse(429, "slow down", retry_after="0.01"), "go slower"),
        (Refuse(500, "oops"), "500: oops"),
        (Refuse(503, "busy"), "503: busy"),
        (b"<html>an error page</html>", "is not an OpenAI chat completion"),
        (b"", "is not an OpenAI chat completion"),
        (b"{}", "is not an OpenAI chat completion"),
        (b'{"choices": []}', "is not an OpenAI chat completion"),
        (b'{"choices": [{"message": null}]}', "is not an OpenAI chat completion"),
        (b"[1, 2]", "is not an OpenAI chat completion"),
    ],
    ids=["429", "500", "503", "html", "empty", "no choices", "empty choices", "no message", "a list"],
)
def test_a_passing_fault_is_retried_and_every_attempt_recorded(hold: Hold, fault: Any, said: str) -> None:
    count = 0

    def flaky(body: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        return fault if count in (1, 4) else good(body)

    with serve(flaky) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert held.result.status == "improved"
    failed = [call for call in held.of(ev.ModelCall) if call.error]
    assert len(failed) == 2 and said in failed[0].error
    for internal in ("object", "attribute", "Error", "subscriptable", "index"):
        assert internal not in failed[0].error, failed[0].error
    assert held.run.info.totals.model_calls == count


def test_an_endpoint_that_stays_down_ends_the_session_with_a_sentence(hold: Hold, tmp_path: Path) -> None:
    gone = pytest.raises(UnusableEnvironment, match="503: busy")
    with serve(lambda body: Refuse(503, "busy")) as server, gone:
        hold(config=config(server.url), generations=5)
    (run,) = (tmp_path / "runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert info["status"] == "failed" and info["exit_code"] == 5 and "busy" in info["stop_reason"]


def test_an_endpoint_that_is_gone_in_the_last_generation_leaves_a_run_to_go_on_with(hold: Hold) -> None:
    """Were it the step alone that failed, the generations would be over and nothing left to resume."""
    up = ExitStack()

    def dying(body: dict[str, Any]) -> Any:
        if _request(body)["request"] != "research":
            return good(body)
        up.close()
        return Cut(Say("never"), 0.0)

    server = up.enter_context(serve(dying))
    with up:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert (held.result.status, held.result.exit_code) == ("failed", 5)
    assert "cannot be reached" in held.result.stop_reason


@pytest.mark.parametrize(
    "answer", [b"<html>a page</html>", b"{}", Refuse(400, "no"), Say("")], ids=["html", "{}", "400", "blank"]
)
def test_a_session_that_never_got_an_answer_fails_and_says_so(
    hold: Hold, tmp_path: Path, answer: Any
) -> None:
    with serve(lambda body: answer) as server, pytest.raises(UnusableEnvironment, match="no usable answer"):
        hold(config=config(server.url), generations=1)
    (run,) = list_runs(tmp_path / "runs")
    assert (run.info.status, run.info.exit_code) == ("failed", 5)
    assert list(run.events())[-1].kind == "run_finished"


def test_useless_answers_are_a_result_and_their_number_is_told(hold: Hold) -> None:
    with serve(lambda body: Say("I would rather not.")) as server:
        held = hold(config=config(server.url), generations=1)
    assert held.result.exit_code == 3
    assert held.result.stop_reason == (
        "the one generation is done; 3 of 3 answers of the models could not be used"
    )


def test_a_request_that_is_refused_costs_its_step_and_not_the_session(hold: Hold) -> None:
    def picky(body: dict[str, Any]) -> Any:
        coder = _request(body)["request"] == "code"
        return Refuse(400, "context too long") if coder and len(body["messages"]) == 2 else good(body)

    with serve(picky) as server:
        held = hold(config=config(server.url), generations=2, experiments=1)
    assert (held.result.status, held.result.exit_code) == ("not_improved", 3)
    failures = [event for event in held.of(ev.ErrorRecorded) if event.where == "coder"]
    assert len(failures) == 2 and "context too long" in failures[0].message and failures[0].recovered


def _quota(body: dict[str, Any]) -> Refuse:
    return Refuse(429, "You exceeded your current quota", "insufficient_quota")


@pytest.mark.parametrize(
    ("script", "changes", "said"),
    [
        (good, {"api_key": "sk-wrong-000000000"}, "OPENAI_API_KEY"),
        (_quota, {}, "quota is used up"),
    ],
    ids=["wrong key", "no quota"],
)
def test_what_no_retry_can_mend_stops_at_once(
    hold: Hold, script: Callable[[dict[str, Any]], Any], changes: dict[str, Any], said: str
) -> None:
    with serve(script) as server, pytest.raises(UsageError, match=said):
        hold(config=config(server.url, **changes))
    assert len(server.requests) <= 1


def test_an_unknown_model_is_named(hold: Hold) -> None:
    with serve(good) as server, pytest.raises(UsageError, match="has no model 'other-model'"):
        hold(config=config(server.url), model="other-model")


def test_an_endpoint_where_nothing_listens_is_found_out_before_the_run(hold: Hold, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(UsageError, match="cannot be reached"):
            hold(config=config(url))
    assert not (tmp_path / "runs").exists()


def test_a_model_without_tools_still_gets_its_candidates_judged(hold: Hold) -> None:
    with serve(good) as server:
        held = hold(config=config(server.url, function_calling=False), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert not any(request.get("tools") for request in server.requests)
    assert [call.called_by for call in held.of(ev.ToolCall)] == ["agent"]
