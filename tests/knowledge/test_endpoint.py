"""Vectors of an OpenAI-compatible endpoint: what is sent, what is borne, and what is said when it fails."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_scientist.knowledge import EndpointEmbedder, EndpointSettings, FakeEmbedder
from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment, UsageError

from .embeddings import KEY, Endpoint, serving

TEXTS = ["tiles of lds", "waves and banks", "mfma blocks", "swizzled tiles", "occupancy"]


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(server: Endpoint) -> Endpoint:
    fresh = Endpoint(server.url)
    server.__dict__.update(fresh.__dict__)
    return server


def embedder(
    endpoint: Endpoint, key: str = KEY, pauses: list[float] | None = None, **more: Any
) -> EndpointEmbedder:
    return EndpointEmbedder(
        endpoint.model,
        endpoint.url,
        EndpointSettings(**{"wait_s": 0.01, **more}),
        environ={"OPENAI_API_KEY": key},
        sleep=(pauses if pauses is not None else []).append,
    )


def test_rows_are_in_the_texts_order_of_length_one_and_of_the_endpoints_dimension(endpoint: Endpoint) -> None:
    endpoint.key = KEY

    rows = embedder(endpoint, batch=2).embed(TEXTS)

    np.testing.assert_allclose(rows, FakeEmbedder().embed(TEXTS), atol=1e-6)
    assert [len(one["input"]) for one in endpoint.requests] == [2, 2, 1]
    assert endpoint.requests[0]["model"] == "hash-64" and endpoint.keys == [f"Bearer {KEY}"] * 3


def test_without_a_key_none_is_sent(endpoint: Endpoint) -> None:
    assert embedder(endpoint, key="").embed(TEXTS[:1]).shape == (1, 64) and endpoint.keys == [None]


@pytest.mark.parametrize("fault", [429, 500, 503, 0])
def test_a_fault_that_passes_is_waited_for_longer_each_time(endpoint: Endpoint, fault: int) -> None:
    pauses: list[float] = []
    endpoint.faults = [(fault, "busy", {}), (fault, "busy", {}), (fault, "busy", {})]

    rows = embedder(endpoint, pauses=pauses).embed(TEXTS)

    assert len(rows) == 5 and len(endpoint.requests) == 4
    assert all(0.01 * 2**i <= pause <= 0.0126 * 2**i for i, pause in enumerate(pauses)), pauses


def test_the_endpoints_own_wish_to_wait_is_heeded(endpoint: Endpoint) -> None:
    pauses: list[float] = []
    endpoint.faults = [(429, "slower", {"Retry-After": "7"})]

    embedder(endpoint, pauses=pauses).embed(TEXTS)

    assert 7 <= pauses[0] <= 9


def test_fewer_texts_are_sent_to_an_endpoint_that_takes_no_more(endpoint: Endpoint) -> None:
    endpoint.most_texts = 2
    own = embedder(endpoint, batch=5)

    assert len(own.embed(TEXTS)) == 5
    endpoint.requests.clear()
    own.embed(TEXTS)

    assert [len(one["input"]) for one in endpoint.requests] == [2, 2, 1]  # it has learnt


def test_a_text_that_is_too_long_goes_without_its_end(endpoint: Endpoint) -> None:
    endpoint.longest_text = 600
    long = "word " * 200

    rows = embedder(endpoint).embed([long, "short"])

    assert rows.shape == (2, 64) and len(endpoint.requests[-2]["input"][0]) <= 600


SAID: list[tuple[int, Any, dict[str, str], type[KernelScientistError], str]] = [
    (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, {}, UsageError, "refused the key"),
    (403, "no", {}, UsageError, "set OPENAI_API_KEY to a valid one"),
    (404, {"detail": "Not Found"}, {}, UsageError, "has no model 'hash-64' that embeds"),
    (400, {"error": {"message": "model not found"}}, {}, UsageError, "has no model 'hash-64'"),
    (
        429,
        {"error": {"message": "x", "code": "insufficient_quota"}},
        {},
        UnusableEnvironment,
        "quota is used up",
    ),
    (307, "", {"Location": "http://elsewhere.example/v1"}, UsageError, r"redirects .*elsewhere\.example"),
    (500, "broken", {}, UnusableEnvironment, r"failed 2 times \(500: \"?broken"),
    (0, "", {}, UnusableEnvironment, "cannot be reached"),
    (200, b"<html>a page</html>", {}, UnusableEnvironment, r"its form is another: '<html>a page"),
    (200, {"data": []}, {}, UnusableEnvironment, "holds 0 of 1 vectors"),
    (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, {}, UnusableEnvironment, "a vector is zero"),
    (200, {"data": [{"index": 0, "embedding": [float("nan")]}]}, {}, UnusableEnvironment, "no numbers"),
    (200, {"data": [{"index": 0, "embedding": "AAAA"}]}, {}, UnusableEnvironment, "form is another"),
    (200, b"[" * 100_000, {}, UnusableEnvironment, "form is another"),
]


@pytest.mark.parametrize(("status", "body", "headers", "kind", "said"), SAID)
def test_what_cannot_work_is_one_sentence_without_the_key(
    endpoint: Endpoint,
    status: int,
    body: Any,
    headers: dict[str, str],
    kind: type[KernelScientistError],
    said: str,
) -> None:
    endpoint.faults = [(status, body, headers)] * 2

    with pytest.raises(kind, match=said) as caught:
        embedder(endpoint, tries=2).embed(["text"])

    assert (
        KEY not in str(caught.value) and "\n" not in str(caught.value) and endpoint.url in str(caught.value)
    )


def test_an_endpoint_that_is_not_there_or_silent_is_told(endpoint: Endpoint) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        never = EndpointEmbedder(
            "m", f"http://127.0.0.1:{port}/v1", EndpointSettings(tries=1, timeout_s=0.2), environ={}
        )
        with pytest.raises(UnusableEnvironment, match=r"cannot be reached \(timed out\)"):
            never.embed(["text"])
    with pytest.raises(UnusableEnvironment, match=r"cannot be reached .*refused"):
        never.embed(["text"])


def test_vectors_whose_length_changes_in_mid_flight_are_refused(endpoint: Endpoint) -> None:
    own = embedder(endpoint, batch=1)
    endpoint.faults = [(200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, {})]

    with pytest.raises(UnusableEnvironment, match="different lengths"):
        own.embed(TEXTS[:2])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8000", "is not the address of an embeddings endpoint"),
        ("http://user:secret@host/v1", "no user name or password"),
        ("http://host:99999/v1", "is not the address"),
        ("http://host/v1?key=1", "is not the address"),
    ],
)
def test_an_address_that_is_none_is_a_usage_error(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        EndpointEmbedder("m", url)
    assert "secret" not in str(caught.value)


def test_the_default_service_wants_a_key_and_keys_have_no_blanks(endpoint: Endpoint) -> None:
    with pytest.raises(UsageError, match=r"no key .* set MY_KEY"):
        EndpointEmbedder("m", settings=EndpointSettings(key_variable="MY_KEY"), environ={}).embed(["x"])
    with pytest.raises(UsageError, match="characters that no key has"):
        embedder(endpoint, key="two words").embed(["x"])


def test_the_key_is_in_no_repr(endpoint: Endpoint) -> None:
    assert KEY not in repr(embedder(endpoint))
