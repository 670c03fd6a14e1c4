"""Models behind an endpoint that speaks the OpenAI protocol, through autogen-ext's client.

Retries are the recording wrapper's, so that every attempt is counted; the SDK's own are switched off.
"""

# ruff: noqa: ARG002 - arguments of AutoGen's interface
from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import openai
from autogen_core import CancellationToken
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo
from autogen_core.tools import Tool, ToolSchema
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from kernel_scientist.sandbox.errors import UsageError

from ..config import ModelsConfig, is_endpoint
from .registry import CallFault, OpenedModel

__all__ = ["open_openai"]

DEFAULT_URL = "https://api.openai.com/v1"
_CHECK_TIMEOUT_S = 10.0
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


class _Client(OpenAIChatCompletionClient):
    """Asks for usage on streamed calls, where services report none unasked (and refuse it on plain ones)."""

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        max_consecutive_empty_chunk_tolerance: int = 0,
        include_usage: bool | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        stream = super().create_stream(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args or {},
            cancellation_token=cancellation_token,
            include_usage=True,
        )
        async for part in stream:
            yield part


def open_openai(name: str, config: ModelsConfig, environ: Mapping[str, str]) -> OpenedModel:
    """The model `name` of the configured endpoint. Raises `UsageError` without a usable URL or key."""
    url = (config.base_url or environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
    if not is_endpoint(url):
        source = "models.base_url" if config.base_url else "environment variable OPENAI_BASE_URL"
        raise UsageError(f"{source}: '{url}' is not an address such as http://localhost:8000/v1.")
    key = config.api_key.get_secret_value() if config.api_key else environ.get(config.api_key_env, "")
    if not key and url == DEFAULT_URL:
        raise UsageError(
            f"There is no key for {urlsplit(url).hostname}; set {config.api_key_env}, or models.base_url."
        )
    options: dict[str, Any] = {} if config.temperature is None else {"temperature": config.temperature}
    info = ModelInfo(
        vision=False,
        function_calling=config.function_calling,
        json_output=False,
        family=ModelFamily.UNKNOWN,
        structured_output=False,
        multiple_system_messages=False,
    )
    client = _Client(
        model=name,
        base_url=url,
        # Local servers want no key, the SDK always wants some text.
        api_key=key or "none",
        model_info=info,
        max_retries=0,
        timeout=config.timeout_s,
        include_name_in_message=False,
        **options,
    )
    meaning = _Meaning(name, url, config.api_key_env)

    async def check() -> None:
        await asyncio.to_thread(_check, url, key, meaning)

    return OpenedModel(
        name=f"openai:{name}",
        client=client,
        explain=meaning.explain,
        check=check,
        price=config.prices.get(name),
        secrets=(key,) if key else (),
    )


class _Meaning:
    """What the endpoint's refusals mean to the user."""

    def __init__(self, model: str, url: str, key_variable: str) -> None:
        self._model = model
        self._url = url
        self._key = key_variable

    def explain(self, error: Exception) -> CallFault:
        if isinstance(error, openai.APITimeoutError):
            return CallFault(f"the endpoint {self._url} did not answer in time", retry=True)
        if isinstance(error, openai.APIConnectionError):
            cause = _root(error)
            return CallFault(f"the endpoint {self._url} cannot be reached: {cause}", retry=True)
        if isinstance(error, openai.APIStatusError):
            return self.refusal(error.status_code, _said(error), _code(error), _wait(error))
        if isinstance(error, openai.APIError) and not isinstance(error, openai.APIResponseValidationError):
            return CallFault(f"the endpoint {self._url} broke off: {_short(error.message)}", retry=True)
        # The client takes the answer's form for granted and trips over another.
        text = f"the endpoint's answer is not an OpenAI chat completion ({_oddity(error)}), from {self._url}"
        return CallFault(text, retry=True)

    def refusal(self, status: int, said: str, code: str = "", wait_s: float | None = None) -> CallFault:
        """What an HTTP status other than 200 means."""
        place = f"The endpoint {self._url}"
        if status in (401, 403):
            return CallFault(
                f"{place} refused the key ({status}: {said}); set {self._key} to a valid one.", fatal=True
            )
        if status == 404:
            return CallFault(
                f"{place} has no model '{self._model}' or is not the API's address ({status}: {said}); "
                "correct the model's name or models.base_url.",
                fatal=True,
            )
        if status == 402 or code in _QUOTA_CODES:
            return CallFault(
                f"{place} says that the quota is used up ({status}: {said}); raise it, or use another key.",
                fatal=True,
            )
        if status == 429:
            return CallFault(f"{place} asks to go slower (429: {said})", retry=True, wait_s=wait_s)
        if status in (408, 409, 425) or status >= 500:
            return CallFault(f"{place} failed ({status}: {said})", retry=True, wait_s=wait_s)
        return CallFault(f"{place} refused the request ({status}: {said})")


def _check(url: str, key: str, meaning: _Meaning) -> None:
    """See that something listens and takes the key; an endpoint without a list of models passes."""
    headers = {"Authorization": f"Bearer {key or 'none'}", "User-Agent": "kernel-scientist"}
    request = urllib.request.Request(f"{url}/models", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_CHECK_TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise UsageError(meaning.refusal(error.code, _short(error.reason)).sentence) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise UsageError(
            f"The endpoint {url} cannot be reached ({_short(reason)}); start it, or correct models.base_url."
        ) from None


def _oddity(error: Exception) -> str:
    """What is wrong with an answer that made the client raise `error`."""
    if isinstance(error, AttributeError) and isinstance(error.obj, str):
        return "it is text, such as an error page, and not JSON"
    if isinstance(error, (json.JSONDecodeError, openai.APIResponseValidationError)):
        return "it is not the JSON asked for"
    if isinstance(error, (LookupError, TypeError, AttributeError)):
        return "choices, message or usage are missing in it"
    return "its form is another"


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _short(error) or type(error).__name__


def _said(error: openai.APIStatusError) -> str:
    body = error.body
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else None
    return _short(message if isinstance(message, str) else error.message)


def _short(value: object) -> str:
    return re.sub(r"\s+", " ", str(value)).strip()[:300].rstrip(".")


def _code(error: openai.APIStatusError) -> str:
    return str(error.code or error.type or "")


def _wait(error: openai.APIStatusError) -> float | None:
    """The wait that a ``Retry-After`` header asks for, in seconds; dates are left to the back-off."""
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None
