"""Vectors from an embeddings endpoint that speaks the OpenAI protocol: a service, vLLM, llama.cpp, Ollama.

Covered: an endpoint that is slow, busy, restarted, or takes fewer or shorter texts at once than it is sent;
one that answers something else. The key goes to that address alone, and into no message and no file.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, final
from urllib.parse import urlsplit

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.printable import printable

from .answers import RefusedError, rows_of_answer, said_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DEFAULT_URL", "EndpointEmbedder", "EndpointSettings", "checked_url"]

DEFAULT_URL = "https://api.openai.com/v1"
_LARGEST_ANSWER = 256 << 20
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_QUOTA = re.compile(r"insufficient_quota|quota|billing", re.IGNORECASE)
# What endpoints answer to too many texts at once, and to one that is too long.
_TOO_MUCH = frozenset({400, 413, 422})
_TOO_LONG = re.compile(r"token|length|long|context|size", re.IGNORECASE)
_SHORTEST_TEXT = 200
_LONGEST_WAIT_S = 60.0
_QUERY_TRIES, _QUERY_S = 2, 20.0


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """How the endpoint is called. The key is read from the variable `key_variable` when it is needed.

    `batch` texts go in one request; `tries` is how often a request is sent before it counts as failed, with
    `wait_s` before the second time and twice as long before each other.
    """

    key_variable: str = "OPENAI_API_KEY"
    batch: int = 64
    tries: int = 6
    wait_s: float = 1.0
    timeout_s: float = 120.0


@final
@dataclass(slots=True)
class EndpointEmbedder:
    """The model `model` of the endpoint at `url` (ending in ``/v1`` or the like).

    Its dimension is what the endpoint sends. Raises `UsageError` for a wrong key or model, and
    `UnusableEnvironment` for an endpoint that does not answer, or not with vectors.
    """

    model: str
    url: str = DEFAULT_URL
    settings: EndpointSettings = EndpointSettings()
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _batch: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.url = checked_url(self.url)
        self._batch = self.settings.batch

    @property
    def name(self) -> str:
        # Not the address: a model that is served elsewhere tomorrow gives the same vectors.
        return f"openai:{self.model}"

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        parts: list[NDArray[np.float32]] = []
        start = 0
        while start < len(texts):
            some = texts[start : start + self._batch]
            try:
                parts.append(self._embed(some))
            except RefusedError as refused:
                if refused.status not in _TOO_MUCH or not self._take_less(texts, start, len(some), refused):
                    raise self._refusal(refused) from refused
                continue
            start += len(some)
        if len({part.shape[1] for part in parts}) > 1:
            raise UnusableEnvironment(
                f"The embeddings endpoint {self._place()} sent vectors of different lengths for the model "
                f"'{self.model}'; see what it serves under that name."
            )
        return np.concatenate(parts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """As `embed`, but an endpoint that is away is left soon: a search can do with words alone."""
        settings = self.settings
        short = replace(
            settings, tries=min(settings.tries, _QUERY_TRIES), timeout_s=min(settings.timeout_s, _QUERY_S)
        )
        row: NDArray[np.float32] = replace(self, settings=short).embed([text])[0]
        return row

    def _take_less(self, texts: list[str], start: int, count: int, refused: RefusedError) -> bool:
        """Send fewer texts at once from now on, or the first without its end; whether there is less to send.

        A passage's end is then missing from its vector, not from the lexical index.
        """
        if count > 1:
            self._batch = count // 2
            return True
        short = texts[start][: len(texts[start]) * 3 // 4]
        if len(short) < _SHORTEST_TEXT or not _TOO_LONG.search(refused.said):
            return False
        texts[start] = short
        return True

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        """One request, sent again while the fault may pass."""
        wait = self.settings.wait_s
        for left in reversed(range(self.settings.tries)):
            try:
                return self._ask(texts)
            except RefusedError as refused:
                passing = refused.status in _PASSING and not _QUOTA.search(refused.said)
                if not passing:
                    raise
                if not left:
                    raise self._refusal(refused) from refused
                pause = max(wait, refused.wait_s or 0.0)
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    raise self._unreachable(error) from error
                pause = wait
            self.sleep(min(pause * random.uniform(1.0, 1.25), _LONGEST_WAIT_S))
            wait *= 2
        raise AssertionError("unreachable")

    def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        headers = {"Content-Type": "application/json", "User-Agent": "kernel-scientist"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(
            f"{self.url}/embeddings", data=json.dumps(body).encode(), headers=headers, method="POST"
        )
        opener = urllib.request.build_opener(_NoRedirects())
        try:
            with opener.open(request, timeout=self.settings.timeout_s) as answer:
                raw = answer.read(_LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError.from_answer(error, self._hide) from None
        try:
            return rows_of_answer(raw[:_LARGEST_ANSWER], len(texts))
        except ValueError as error:
            raise UnusableEnvironment(
                f"The embeddings endpoint {self._place()} did not answer with vectors ({error}: "
                f"'{self._hide(said_by(raw))}'); see that the address and the model '{self.model}' are right."
            ) from error

    def _key(self) -> str:
        key = self.environ.get(self.settings.key_variable, "").strip()
        if not key and self.url == DEFAULT_URL:
            raise UsageError(
                f"There is no key for the embeddings endpoint {self._place()}; "
                f"set {self.settings.key_variable}, or name another address: openai:MODEL@URL."
            )
        if not key.isascii() or any(one.isspace() for one in key):
            raise UsageError(
                f"The key in {self.settings.key_variable} holds characters that no key has; copy it again."
            )
        return key

    def _refusal(self, refused: RefusedError) -> UsageError | UnusableEnvironment:
        place = f"The embeddings endpoint {self._place()}"
        told = f"{refused.status}: {refused.said}" if refused.said else f"{refused.status}"
        if refused.status in (401, 403):
            return UsageError(
                f"{place} refused the key ({told}); set {self.settings.key_variable} to a valid one."
            )
        if refused.status == 402 or (refused.status == 429 and _QUOTA.search(refused.said)):
            return UnusableEnvironment(
                f"{place} says that the quota is used up ({told}); raise it, or use another key."
            )
        if refused.status == 404 or re.search(r"model", refused.said, re.IGNORECASE):
            return UsageError(
                f"{place} has no model '{self.model}' that embeds, or is not the API's address ({told}); "
                "correct --embedder."
            )
        if 300 <= refused.status < 400:
            return UsageError(f"{place} redirects ({told}); name the address that it points to.")
        if refused.status in _PASSING:
            return UnusableEnvironment(f"{place} failed {self.settings.tries} times ({told}); try later.")
        return UnusableEnvironment(f"{place} refused the texts ({told}); see that it serves embeddings.")

    def _unreachable(self, error: Exception) -> UnusableEnvironment:
        reason = getattr(error, "reason", error)
        said = self._hide(printable(str(reason) or type(error).__name__, " "))[:200]
        return UnusableEnvironment(
            f"The embeddings endpoint {self._place()} cannot be reached ({said}); start it, or correct its "
            "address in --embedder."
        )

    def _hide(self, text: str) -> str:
        key = self.environ.get(self.settings.key_variable, "").strip()
        return text.replace(key, "[key]") if key else text

    def _place(self) -> str:
        return printable(self.url, " ")


def checked_url(text: str) -> str:
    """An endpoint's address without a slash at its end. Raises `UsageError` for what is none."""
    wrong = UsageError(
        f"'{printable(text, ' ')[:80]}' is not the address of an embeddings endpoint; give one like "
        "http://localhost:8000/v1."
    )
    try:
        parts = urlsplit(text.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise wrong from None
    if not usable or parts.query or parts.fragment or any(one.isspace() for one in text.strip()):
        raise wrong
    if parts.username or parts.password:
        raise UsageError(
            "An embeddings endpoint's address may hold no user name or password, since it is stored; leave "
            "them out."
        )
    return text.strip().rstrip("/")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the texts, and the key, to an address that nobody named."""

    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002 - the interface of urllib
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: Any,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None
