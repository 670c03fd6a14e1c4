"""Models behind an endpoint that speaks the OpenAI protocol, through the openai package.

Retries are the recording wrapper's, so that every attempt is counted; the SDK's own are switched off.
AutoGen's own client is not used: it drops cached tokens and a refusal's words, and takes the form of an
answer for granted.
"""

# ruff: noqa: ARG002 - arguments of AutoGen's interface
from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast, final
from urllib.parse import unquote, urlsplit, urlunsplit

import openai
from autogen_core import CancellationToken
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from kernel_scientist.sandbox.errors import UsageError

from ..config import ModelsConfig, is_endpoint
from ..model_config import without_secrets
from .faults import EndpointFaults
from .prices import find_offer
from .protocol import MAX_ANSWER, Answer, NotACompletion, as_tools, as_wire, completion_of, items_of
from .registry import Feature, OpenedModel, hider
from .schemas import strict_schema

__all__ = ["EndpointClient", "open_openai"]

DEFAULT_URL = "https://api.openai.com/v1"
_CHECK_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 15.0


@final
class EndpointClient(ChatCompletionClient):
    """A model of an endpoint. What the endpoint turns out not to have is left out from then on (`drop`)."""

    def __init__(self, name: str, url: str, key: str, config: ModelsConfig) -> None:
        self._client = openai.AsyncOpenAI(
            base_url=url,
            # Local servers want no key, the SDK always wants some text.
            api_key=key or "none",
            max_retries=0,
            timeout=openai.Timeout(config.timeout_s, connect=min(_CONNECT_TIMEOUT_S, config.timeout_s)),
            # Neither the key nor what is asked goes to an address that the user did not give.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        self._settings = _settings(name, url, config)
        self._has: set[Feature] = {"usage"}
        if config.function_calling:
            self._has.add("tools")
        if config.structured_output != "prompt":
            self._has.add("schema")

    def drop(self, feature: Feature) -> None:
        """Do without `feature` from now on."""
        self._has.discard(feature)

    def has(self, feature: Feature) -> bool:
        return feature in self._has

    async def models(self) -> tuple[str, ...]:
        """The models that the endpoint lists; none where it has no such list. Raises the SDK's errors."""
        quick = self._client.with_options(timeout=_CHECK_TIMEOUT_S)
        response = await quick.models.with_raw_response.list()
        try:
            rows = json.loads(response.text)["data"]
            return tuple(str(row["id"])[:200] for row in rows)
        except (ValueError, LookupError, TypeError, RecursionError):
            return ()

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        request = self._request(messages, tools, json_output)
        # Read here and not by the SDK, which takes the answer's form for granted.
        ask = cast("Callable[..., Awaitable[Any]]", self._client.chat.completions.with_raw_response.create)
        response = await ask(**request)
        return completion_of(str(response.text))

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        request = self._request(messages, tools, json_output)
        if "usage" in self._has:
            # Unasked, services report none on streams; asked on plain calls, they refuse.
            request["stream_options"] = {"include_usage": True}
        answer = Answer()
        stream = await self._client.chat.completions.create(**request, stream=True)
        async with stream:
            async for chunk in stream:
                for text in _take(answer, chunk):
                    yield text
                if answer.characters > MAX_ANSWER:
                    answer.cut()
                    break
        if not answer.finished:
            raise NotACompletion("the stream ended before the answer did")
        yield answer.result()

    def _request(
        self,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema],
        json_output: bool | type[BaseModel] | None,
    ) -> dict[str, Any]:
        request: dict[str, Any] = {**self._settings, "messages": as_wire(messages)}
        if tools and "tools" in self._has:
            request["tools"] = as_tools(tools)
        if isinstance(json_output, type) and "schema" in self._has:
            request["response_format"] = strict_schema(json_output)
        return request

    async def close(self) -> None:
        await self._client.close()

    # The recording wrapper keeps the accounts.
    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        return 0

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        return 0

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling="tools" in self._has,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output="schema" in self._has,
        )


def _settings(name: str, url: str, config: ModelsConfig) -> dict[str, Any]:
    """What every request says beside its messages."""
    # The service has renamed it for its reasoning models; other servers know the old name.
    longest = "max_completion_tokens" if url == DEFAULT_URL else "max_tokens"
    values = {
        "model": name,
        "temperature": config.temperature,
        "reasoning_effort": config.reasoning_effort,
        longest: config.max_output_tokens,
    }
    return {key: value for key, value in values.items() if value is not None}


def _take(answer: Answer, chunk: object) -> list[str]:
    """Add one chunk of a stream to the answer; returns the new text."""
    values = chunk.model_dump(warnings="none") if isinstance(chunk, BaseModel) else chunk
    if not isinstance(values, dict):
        raise NotACompletion("a part of the stream is not an object")
    part = cast("dict[str, Any]", values)
    answer.count(part.get("usage"))
    texts: list[str] = []
    for choice in items_of(part.get("choices"))[:1]:
        if isinstance(choice, dict):
            one = cast("dict[str, Any]", choice)
            delta = one.get("delta")
            if isinstance(delta, dict):
                texts.append(answer.add(cast("dict[str, Any]", delta)))
            answer.finish(one.get("finish_reason"))
    return [text for text in texts if text]


def open_openai(name: str, config: ModelsConfig, environ: Mapping[str, str]) -> OpenedModel:
    """The model `name` of the configured endpoint. Raises `UsageError` without a usable URL or key."""
    url = (config.base_url or environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
    if not is_endpoint(url):
        source = "models.base_url" if config.base_url else "environment variable OPENAI_BASE_URL"
        shown = without_secrets(repr(url))
        raise UsageError(f"{source}: {shown} is not an address such as http://localhost:8000/v1.")
    given = config.api_key.get_secret_value() if config.api_key else environ.get(config.api_key_env, "")
    key = given.strip()
    if not key and url == DEFAULT_URL:
        raise UsageError(
            f"There is no key for {urlsplit(url).hostname}; set {config.api_key_env}, or models.base_url."
        )
    if not key.isascii() or any(one.isspace() for one in key):
        raise UsageError(f"The key in {config.api_key_env} holds characters that no key has; copy it again.")
    secrets = (*((key,) if key else ()), *_secrets_of(url))
    client = EndpointClient(name, url, key, config)
    settings = tuple(_settings(name, url, config))
    faults = EndpointFaults(name, _shown(url), config.api_key_env, settings, hider(secrets))
    offer = find_offer(name, url, config)

    async def check() -> None:
        faults.known_models = await _check(client, faults, _shown(url))

    return OpenedModel(
        name=f"openai:{name}",
        client=client,
        explain=faults.explain,
        check=check,
        price=offer.price,
        secrets=secrets,
        context_tokens=config.context_tokens or offer.context,
        drop=client.drop,
    )


def _secrets_of(url: str) -> tuple[str, ...]:
    """What an address tells in confidence: its password, or a name that stands for one; as sent, too."""
    parts = urlsplit(url)
    secret = parts.password or parts.username
    if not secret:
        return ()
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    sent = base64.b64encode(f"{name}:{password}".encode()).decode()
    return tuple(dict.fromkeys((secret, unquote(secret), sent)))


def _shown(url: str) -> str:
    """The address without the name and password that may stand in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


async def _check(client: EndpointClient, faults: EndpointFaults, url: str) -> tuple[str, ...]:
    """See that something listens and takes the key; an endpoint without a list of models passes."""
    try:
        return await client.models()
    except openai.APIStatusError as error:
        if error.status_code in (401, 402, 403) or 300 <= error.status_code < 400:
            raise UsageError(faults.explain(error).sentence) from None
    except openai.APIError as error:
        words = faults.explain(error).sentence.partition(": ")[2] or "it does not answer"
        raise UsageError(
            f"The endpoint {url} cannot be reached ({words}); start it, or correct models.base_url."
        ) from None
    return ()
