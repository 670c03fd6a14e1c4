"""A small server that speaks the OpenAI protocol: chat completions, plain and streamed, and a list of models.

What it answers is a function's choice: a `Say` (text or tool calls), a `Refuse` (an HTTP status), a `Cut`
(the connection is closed in the middle of a `Say`), a `Hang` (nothing comes, or nothing more), and a `Raw`
or bytes for what is no protocol at all. It keeps every request it got.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["KEY", "Answer", "Cut", "Hang", "Raw", "Refuse", "Say", "Server", "serve"]

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Say:
    """A completion: text, or calls as (name, JSON arguments). `message` and `usage` add to what is sent."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = ""
    message: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refuse:
    """An HTTP error in the protocol's form."""

    status: int
    message: str = "refused"
    code: str = ""
    retry_after: str = ""
    param: str = ""


@dataclass(frozen=True)
class Raw:
    """Any body with any status and content type."""

    body: bytes
    kind: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Cut:
    """The connection is closed when this share of the answer was sent."""

    say: Say
    share: float = 0.5


@dataclass(frozen=True)
class Hang:
    """The request is read, and nothing is sent after this share of the answer."""

    say: Say | None = None
    share: float = 0.5


Answer = Say | Refuse | Raw | Cut | Hang | bytes
Script = Callable[[dict[str, Any]], Answer]


@dataclass
class Server:
    """A running server; `url` is the base URL a client is given."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    """Answers what the script says, to those with the right key; `serve` makes a class of its own of it."""

    script: Script
    authorization: str
    record: Server
    closing: threading.Event

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def do_GET(self) -> None:
        if self._authorised():
            self._json(200, {"object": "list", "data": [{"id": "good-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.record.keys.append(self.headers.get("Authorization", ""))
        if not self._authorised():
            return
        if body["model"] != "good-model":
            self._error(Refuse(404, f"The model `{body['model']}` does not exist", "model_not_found"))
            return
        self.record.requests.append(body)
        self._answer(type(self).script(body), stream=bool(body.get("stream")))

    def _answer(self, answer: Answer, *, stream: bool) -> None:
        match answer:
            case Refuse() as refusal:
                self._error(refusal)
            case bytes() as raw:
                self._send(200, raw, "text/html")
            case Raw() as raw:
                self._send(raw.status, raw.body, raw.kind)
            case Hang() as hang:
                if hang.say is not None:
                    self._say(hang.say, hang.share, stream=stream)
                    self.wfile.flush()
                self.closing.wait(30)
                self.close_connection = True
            case Cut() as cut:
                self._say(cut.say, cut.share, stream=stream)
                self.close_connection = True
            case Say() as say:
                self._say(say, stream=stream)

    def _authorised(self) -> bool:
        if self.headers.get("Authorization") == self.authorization:
            return True
        self._error(Refuse(401, "Incorrect API key provided", "invalid_api_key"))
        return False

    def _error(self, refusal: Refuse) -> None:
        error = {
            "message": refusal.message,
            "type": "error",
            "code": refusal.code or None,
            "param": refusal.param or None,
        }
        self._json(refusal.status, {"error": error}, refusal.retry_after)

    def _json(self, status: int, value: object, retry_after: str = "") -> None:
        self._send(status, json.dumps(value).encode(), "application/json", retry_after)

    def _say(self, say: Say, share: float = 1.0, *, stream: bool) -> None:
        raw, kind = _encoded(say, stream=stream)
        self._send(200, raw, kind, sent=int(len(raw) * share))

    def _send(
        self, status: int, raw: bytes, kind: str, retry_after: str = "", *, sent: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(raw[:sent])


@contextmanager
def serve(script: Script, *, key: str = KEY, authorization: str = "") -> Iterator[Server]:
    """Serve `script` on a free port of this machine until the block ends, to those with the key."""
    server, closing_now = Server(""), threading.Event()

    class Handler(_Handler):
        record, closing = server, closing_now

    Handler.script = staticmethod(script)
    Handler.authorization = authorization or f"Bearer {key}"
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        closing_now.set()
        http.shutdown()
        http.server_close()
        thread.join(5)


_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "good-model"}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def _encoded(say: Say, *, stream: bool) -> tuple[bytes, str]:
    """The body and its content type."""
    if not stream:
        return json.dumps(_completion(say)).encode(), "application/json"
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(say)]
    return "".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream"


def _finish(say: Say) -> str:
    return say.finish or ("tool_calls" if say.calls else "stop")


def _calls(say: Say, **extra: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}, **extra}
        for n, (name, arguments) in enumerate(say.calls)
    ]


def _completion(say: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None, **say.message}
    if say.calls:
        message["tool_calls"] = _calls(say)
    choice = {"index": 0, "message": message, "finish_reason": _finish(say)}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": {**_USAGE, **say.usage}}


def _chunks(say: Say) -> Iterator[dict[str, Any]]:
    head = {**_HEAD, "object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{key: value} for key, value in say.message.items()]
    half = len(say.text) // 2
    deltas += [{"content": part} for part in (say.text[:half], say.text[half:]) if part]
    deltas += [{"tool_calls": [{**call, "index": n}]} for n, call in enumerate(_calls(say))]
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(say)}]}
    yield {**head, "choices": [], "usage": {**_USAGE, **say.usage}}
