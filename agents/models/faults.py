"""What the refusals and failures of an endpoint mean to the user, and to whoever would try again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import Any, cast

import openai

from .protocol import NotACompletion
from .registry import CallFault, Feature

__all__ = ["EndpointFaults"]

_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
)
_NO_MODEL_CODES = frozenset({"model_not_found", "model_not_exist", "invalid_model"})
_NO_MODEL = re.compile(r"model.{0,80}(not (found|exist)|does ?n[o']t exist|not a valid)", re.IGNORECASE)
_TOO_LONG_CODES = frozenset({"context_length_exceeded"})
_TOO_LONG = re.compile(
    r"context (length|window|size)|too many tokens|prompt is too long|too long for|exceed_context_size",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:context (?:length|window|size)|n_ctx|maximum)\D{0,40}?(\d{4,7})(?=\D|$)", re.IGNORECASE
)
# What an endpoint may not have, and how it says so; the status tells little.
_FEATURES: tuple[tuple[Feature, re.Pattern[str]], ...] = (
    ("schema", re.compile(r"response_format|json_schema|structured output|grammar", re.IGNORECASE)),
    ("usage", re.compile(r"stream_options|include_usage", re.IGNORECASE)),
    ("tools", re.compile(r"\btools?\b|tool_choice|function call", re.IGNORECASE)),
)
_FEATURE_STATUSES = frozenset({400, 404, 405, 415, 422, 500, 501})
_ORIGIN = re.compile(r"(https?://)(?:[^/?#]*@)?([^/?#@]+)", re.IGNORECASE)
_KEYS = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}


class EndpointFaults:
    """Explains the errors of one model at one endpoint. `hide` blots the key out of what is said.

    `settings` are the parameters that every request carries.
    """

    def __init__(
        self, model: str, url: str, key_variable: str, settings: Sequence[str], hide: Callable[[str], str]
    ) -> None:
        self._model = model
        self._url = url
        self._key = key_variable
        self._settings = [one for one in settings if one != "model"]
        self._hide = hide
        self.known_models: tuple[str, ...] = ()

    def explain(self, error: Exception) -> CallFault:
        """What an exception of a call means."""
        place = f"the endpoint {self._url}"
        if isinstance(error, openai.APITimeoutError) or _is_transport(error, "TimeoutException"):
            return CallFault(f"{place} did not answer in time", retry=True, billed=True)
        if isinstance(error, openai.APIConnectionError):
            cause = _root(error)
            sent = not _is_transport(cause, "ConnectError", "UnsupportedProtocol")
            words = self._hide(_short(cause) or type(cause).__name__)
            return CallFault(
                f"{place} cannot be reached: {words}", retry=True, billed=sent, unreachable=not sent
            )
        if _is_transport(error, "HTTPError"):
            words = self._hide(_short(error) or type(error).__name__)
            return CallFault(f"{place} broke off: {words}", retry=True, billed=True)
        if isinstance(error, openai.APIStatusError):
            if 300 <= error.status_code < 400:
                return self._redirect(error.status_code, error.response.headers.get("location", ""))
            return self.refusal(
                error.status_code, _body(error), wait_s=_wait(error.response.headers, time.time())
            )
        if isinstance(error, openai.APIError):
            return CallFault(
                f"{place} broke off: {self._hide(_short(error.message))}", retry=True, billed=True
            )
        what = str(error) if isinstance(error, NotACompletion) else "its form is another"
        text = f"the endpoint's answer is not an OpenAI chat completion ({what}), from {self._url}"
        return CallFault(text, retry=True, billed=True)

    def refusal(self, status: int, body: Mapping[str, Any], wait_s: float | None = None) -> CallFault:
        """What an HTTP status other than 200 means; `body` is the protocol's error object."""
        place = f"The endpoint {self._url}"
        said = self._hide(_short(body.get("message", "")))
        told = f"{status}: {said}" if said else f"{status}"
        codes = {str(body.get(key) or "") for key in ("code", "type")}
        if status == 402 or codes & _QUOTA_CODES:
            return CallFault(
                f"{place} says that the quota is used up ({told}); raise it, or use another key.", fatal=True
            )
        if status in (401, 403):
            return CallFault(f"{place} refused the key ({told}); set {self._key} to a valid one.", fatal=True)
        if status == 429:
            return CallFault(f"{place} asks to go slower ({told})", retry=True, wait_s=wait_s)
        # The parameter at fault is named, and may be named in the text alone.
        words = f"{body.get('param') or ''} {said}"
        if status == 413 or (status in (400, 422) and (codes & _TOO_LONG_CODES or _TOO_LONG.search(words))):
            found = _WINDOW.search(words)
            window = int(found[1]) if found else None
            return CallFault(f"{place} finds the prompt too long ({told})", too_long=True, window=window)
        lacks: Feature | None = next((name for name, pattern in _FEATURES if pattern.search(words)), None)
        if status in _FEATURE_STATUSES and lacks is not None:
            return CallFault(f"{place} refused the request ({told})", lacks=lacks, retry=status >= 500)
        if status == 404 or codes & _NO_MODEL_CODES or (status == 400 and _NO_MODEL.search(said)):
            return CallFault(self._no_model(place, told), fatal=True)
        setting = next((one for one in self._settings if re.search(rf"\b{one}\b", words)), None)
        if status in (400, 422) and setting is not None:
            name = f"models.{_KEYS.get(setting, setting)}"
            return CallFault(f"{place} refuses the setting {name} ({told}); change or unset it.", fatal=True)
        if status in (408, 409, 425) or status >= 500:
            return CallFault(f"{place} failed ({told})", retry=True, wait_s=wait_s)
        return CallFault(f"{place} refused the request ({told})")

    def _redirect(self, status: int, where: str) -> CallFault:
        # Its path is this request's, and its query may hold anything.
        found = _ORIGIN.match(where)
        to = f"{found[1]}{found[2]}" if found else "another path"
        return CallFault(
            f"The endpoint {self._url} redirects to {self._hide(_short(to))} ({status}), which is not "
            "followed; set models.base_url to the API's own address.",
            fatal=True,
        )

    def _no_model(self, place: str, told: str) -> str:
        near = get_close_matches(self._model, self.known_models, n=1, cutoff=0.4)
        hint = f"did you mean '{near[0]}'?" if near else "correct the model's name or models.base_url."
        return f"{place} has no model '{self._model}' or is not the API's address ({told}); {hint}"


def _is_transport(error: BaseException, *names: str) -> bool:
    """Whether `error` is one of these of httpx's, or of the successor that newer openai packages bring."""
    return any(
        one.__name__ in names and one.__module__.partition(".")[0] in ("httpx", "httpx2")
        for one in type(error).__mro__
    )


def _root(error: BaseException) -> BaseException:
    """The first cause that says something of the connection."""
    while error.__cause__ is not None and not _is_transport(error, "HTTPError"):
        error = error.__cause__
    return error


def _body(error: openai.APIStatusError) -> Mapping[str, Any]:
    """The error object of the body, whose forms differ between services; else the body's text."""
    body: object = error.body
    if isinstance(body, dict):
        values = cast("dict[str, Any]", body)
        inner = values.get("error", values)
        if isinstance(inner, dict):
            return {"message": json.dumps(inner), **cast("dict[str, Any]", inner)}
        return {**values, "message": str(values.get("message") or inner)}
    text = str(body or "").strip()
    is_page = text.startswith("<")
    return {"message": "an error page" if is_page else text}


def _short(value: object) -> str:
    return re.sub(r"\s+", " ", str(value)).strip()[:300].rstrip(".")


def _wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that the headers ask to wait; ``Retry-After`` may be a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
