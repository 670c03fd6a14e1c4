"""What is asked of an endpoint, and what is made of its answers: settings, schemas, reasoning, tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.benchmarker import FindingReply
from kernel_scientist.agents.config import ModelsConfig, Price
from kernel_scientist.agents.models.openai import open_openai
from kernel_scientist.agents.models.schemas import strict_schema
from kernel_scientist.agents.researcher import ResearchReply
from kernel_scientist.agents.selector import SelectReply
from kernel_scientist.sandbox.errors import UsageError

from .conftest import Hold
from .openai_server import KEY, Answer, Refuse, Say, serve
from .test_openai import _request, config, good


def _of(requests: list[dict[str, Any]], agent: str) -> list[dict[str, Any]]:
    return [one for one in requests if _request(one)["request"] == agent]


@pytest.mark.parametrize("form", [SelectReply, ResearchReply, FindingReply])
def test_a_schema_is_strict_all_the_way_down(form: Any) -> None:
    sent = strict_schema(form)
    assert sent["type"] == "json_schema" and sent["json_schema"]["strict"] is True

    def check(node: Any) -> int:
        if isinstance(node, list):
            return sum(check(one) for one in node)
        if not isinstance(node, dict):
            return 0
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert sorted(node["required"]) == sorted(node["properties"])
        assert not {"default", "minLength", "maxItems", "minimum"} & set(node) - set(
            node.get("properties", ())
        )
        return (node.get("type") == "object") + sum(check(one) for one in node.values())

    assert check(sent["json_schema"]["schema"]) >= 1
    assert set(sent["json_schema"]["schema"]["properties"]) == set(form.model_fields)


def test_answers_that_are_one_object_are_asked_for_by_schema_and_code_is_not(hold: Hold) -> None:
    def plain(body: dict[str, Any]) -> Say:
        say = good(body)
        # With a schema the answer is the bare object.
        text = (
            say.text.replace("```json\n", "").replace("\n```", "") if "response_format" in body else say.text
        )
        return Say(text.removeprefix("Here it is.\n"), say.calls)

    with serve(plain) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert held.result.status == "improved"
    names = {
        agent: {one["response_format"]["json_schema"]["name"] for one in _of(server.requests, agent)}
        for agent in ("select", "research", "benchmark")
    }
    assert names == {"select": {"SelectReply"}, "research": {"ResearchReply"}, "benchmark": {"FindingReply"}}
    assert not any("response_format" in one for one in _of(server.requests, "code"))


@pytest.mark.parametrize(
    "refusal",
    [
        Refuse(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
        Refuse(422, "extra fields not permitted", param="response_format"),
        Refuse(500, "Cannot use custom grammar constraints with tools."),
    ],
    ids=["400", "422", "500"],
)
def test_an_endpoint_without_schemas_is_found_out_once_and_told(hold: Hold, refusal: Refuse) -> None:
    with serve(lambda body: refusal if "response_format" in body else good(body)) as server:
        held = hold(config=config(server.url, tries=1), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert sum("response_format" in one for one in server.requests) == 1
    assert len([call for call in held.of(ev.ModelCall) if call.error]) == 1
    (note,) = held.of(ev.ErrorRecorded)
    assert "going on without schemas for answers" in note.message and note.recovered
    assert held.run.info.totals.model_calls == len(server.requests)


def test_a_schema_that_is_insisted_on_is_not_given_up(hold: Hold) -> None:
    refusal = Refuse(400, "response_format is not supported")
    with (
        serve(lambda body: refusal if "response_format" in body else good(body)) as server,
        pytest.raises(UsageError, match=r"models\.structured_output = 'auto'"),
    ):
        hold(config=config(server.url, structured_output="schema"), generations=1)
    assert len(server.requests) == 1


def test_prompts_alone_are_used_where_the_user_says_so(hold: Hold) -> None:
    with serve(good) as server:
        hold(config=config(server.url, structured_output="prompt"), generations=1, experiments=1)
    assert not any("response_format" in one for one in server.requests)


def test_an_endpoint_without_tools_is_asked_without_and_candidates_are_judged(hold: Hold) -> None:
    refusal = Refuse(400, "registry/llama does not support tools")
    with serve(lambda body: refusal if body.get("tools") else good(body)) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert sum(bool(one.get("tools")) for one in server.requests) == 1
    assert [call.called_by for call in held.of(ev.ToolCall)] == ["agent"]


def test_a_stream_that_cannot_count_tokens_is_asked_without(hold: Hold) -> None:
    refusal = Refuse(400, "Unrecognized request argument supplied: stream_options")
    with serve(lambda body: refusal if "stream_options" in body else good(body)) as server:
        held = hold(config=config(server.url, stream=True), generations=1, experiments=1)
    assert held.result.status == "improved"
    assert sum("stream_options" in one for one in server.requests) == 1


def test_each_agent_is_asked_with_its_own_model_endpoint_and_settings(hold: Hold) -> None:
    other_key = "sk-other-9876543210"
    with serve(good) as server, serve(good, key=other_key) as other:
        coder = {
            "base_url": other.url, "api_key": other_key, "temperature": 0.1, "reasoning_effort": "high",
            "max_output_tokens": 5000, "stream": True,
        }  # fmt: skip
        settings = config(server.url, temperature=0.9, coder=coder, selector={"reasoning_effort": "low"})
        held = hold(config=settings, generations=1, experiments=1)

    assert held.result.status == "improved"
    assert {_request(one)["request"] for one in other.requests} == {"code"}
    (code,) = other.requests
    assert (code["temperature"], code["reasoning_effort"], code["stream"]) == (0.1, "high", True)
    assert code["max_tokens"] == 5000
    assert {one["temperature"] for one in server.requests} == {0.9}
    efforts = {_request(one)["request"]: one.get("reasoning_effort") for one in server.requests}
    assert efforts == {"select": "low", "research": None, "benchmark": None}
    text = "".join(file.read_text() for file in held.run.path.rglob("*") if file.is_file())
    assert KEY not in text and other_key not in text


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_a_model_s_reasoning_is_recorded_and_not_sent_back(hold: Hold, name: str, stream: bool) -> None:
    def thinking(body: dict[str, Any]) -> Say:
        say = good(body)
        return Say(say.text, say.calls, message={name: "Let me think about banks."})

    with serve(thinking) as server:
        held = hold(config=config(server.url, stream=stream), generations=1, experiments=1)
    calls = held.of(ev.ModelCall)
    assert {call.response["thought"] for call in calls} == {"Let me think about banks."}
    assert "think about banks" not in json.dumps(server.requests)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 60}}, 60),
        ({"prompt_cache_hit_tokens": 40}, 40),
        ({"prompt_tokens_details": {"cached_tokens": 9_999}}, 100),
        ({"prompt_tokens_details": None}, 0),
    ],
)
def test_tokens_read_from_the_cache_are_counted_and_cost_less(
    hold: Hold, usage: dict[str, Any], cached: int, stream: bool
) -> None:
    def counting(body: dict[str, Any]) -> Say:
        say = good(body)
        return Say(say.text, say.calls, usage={**usage, "completion_tokens_details": {"reasoning_tokens": 4}})

    prices = {"good-model": Price(input=10.0, cached=1.0, output=100.0)}
    with serve(counting) as server:
        held = hold(config=config(server.url, stream=stream, prices=prices), generations=1, experiments=1)
    calls = held.of(ev.ModelCall)
    assert {(call.usage.cached_tokens, call.usage.reasoning_tokens) for call in calls} == {(cached, 4)}
    expected = ((100 - cached) * 10.0 + cached * 1.0 + 10 * 100.0) / 1e6
    assert all(call.cost_usd == pytest.approx(expected) for call in calls)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": -5},
        {"prompt_tokens": "many", "completion_tokens": [1]},
        {"prompt_tokens": True, "completion_tokens": 0.5},
    ],
    ids=["null", "negative", "words", "other types"],
)
def test_token_counts_that_are_none_are_estimated_and_marked(hold: Hold, usage: dict[str, Any]) -> None:
    def odd(body: dict[str, Any]) -> Say:
        say = good(body)
        return Say(say.text, say.calls, usage=usage)

    with serve(odd) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    calls = held.of(ev.ModelCall)
    assert all(call.usage.estimated and call.usage.prompt_tokens > 200 for call in calls)


def test_a_model_that_is_missing_is_named_with_one_that_is_there(hold: Hold) -> None:
    with serve(good) as server, pytest.raises(UsageError, match="did you mean 'good-model'"):
        hold(config=config(server.url), model="goodmodel")


def test_a_prompt_that_is_too_long_is_cut_to_what_the_server_says(hold: Hold) -> None:
    said = "This model's maximum context length is 6000 tokens. However, you requested 9000 tokens."
    refused: list[int] = []

    def small(body: dict[str, Any]) -> Answer:
        size = len(json.dumps(body["messages"]))
        if _request(body)["request"] == "research" and _request(body)["passages"]:
            refused.append(size)
            return Refuse(400, said, "context_length_exceeded")
        return good(body)

    with serve(small) as server:
        held = hold(config=config(server.url), generations=1, experiments=1)
    assert held.result.status == "improved" and refused
    cuts = held.of(ev.ContextCut)
    assert cuts and all(cut.agent == "researcher" and cut.window <= 6000 for cut in cuts)
    assert any("passages" in name for cut in cuts for name in cut.cut)
    asked = _of(server.requests, "research")[-1]["messages"][1]["content"]
    assert "Left out for want of room" in asked


def test_prompts_fit_the_window_that_is_configured(hold: Hold) -> None:
    from kernel_scientist.knowledge.tokens import count_tokens

    with serve(good) as server:
        held = hold(config=config(server.url, context_tokens=6_000), generations=2, experiments=1)
    assert held.of(ev.ContextCut)
    for request in server.requests:
        assert sum(count_tokens(str(one["content"])) for one in request["messages"]) <= 6_000


def test_a_key_is_no_part_of_what_can_be_printed() -> None:
    opened = open_openai(
        "m", ModelsConfig(base_url="http://u:secret-pass@127.0.0.1:9/v1"), {"OPENAI_API_KEY": KEY}
    )
    assert KEY not in repr(opened) and "secret-pass" not in repr(opened)
    assert {KEY, "secret-pass"} <= set(opened.secrets)
    fault = opened.explain(ValueError(f"bad header {KEY}"))
    assert KEY not in fault.sentence and "secret-pass" not in fault.sentence


@pytest.mark.parametrize("key", ["sk with blank", "sk-ümlaut", "sk-\u200bzero"])
def test_a_key_with_characters_that_none_has_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError, match="characters that no key has") as error:
        open_openai("m", ModelsConfig(base_url="http://127.0.0.1:9/v1"), {"OPENAI_API_KEY": key})
    assert key not in str(error.value)


def test_a_model_of_the_table_has_its_price_and_its_window() -> None:
    opened = open_openai("gpt-5", ModelsConfig(), {"OPENAI_API_KEY": KEY})
    assert opened.price is not None and opened.price.date and opened.context_tokens == 272_000
