"""An embeddings endpoint on this machine in the OpenAI protocol, with the faults that real ones have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kernel_scientist.knowledge import FakeEmbedder

KEY = "sk-of-the-tests"


@dataclass
class Endpoint:
    """What it serves and how; `faults` are answers, each a status, a body and headers, that come first, or
    after `good` right ones."""

    url: str = ""
    model: str = "hash-64"
    dimensions: int = 64
    key: str | None = None
    most_texts: int = 10_000
    longest_text: int = 1_000_000
    sign: float = 1.0
    good: int = 0
    faults: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def answer(self, request: dict[str, Any], key: str | None) -> tuple[int, Any, dict[str, str]]:
        self.requests.append(request)
        self.keys.append(key)
        if self.faults and self.good:
            self.good -= 1
        elif self.faults:
            return self.faults.pop(0)
        if self.key is not None and key != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {key}"}}, {}
        if request["model"] != self.model:
            return 404, {"error": {"message": f"The model {request['model']} does not exist"}}, {}
        texts = request["input"]
        if len(texts) > self.most_texts:
            said = f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}"
            return 422, {"error": said, "error_type": "Validation"}, {}
        if max(map(len, texts)) > self.longest_text:
            return 400, {"message": "This model's maximum context length is 512 tokens"}, {}
        rows = FakeEmbedder().embed(texts).reshape(len(texts), -1, self.dimensions).sum(1) * self.sign * 3.0
        data = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(rows)]
        return 200, {"object": "list", "model": self.model, "data": data[::-1]}, {}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """The endpoint, at `url`, until the block ends."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/embeddings":
                status, answer, headers = 404, "no such page", dict[str, str]()
            else:
                status, answer, headers = endpoint.answer(body, self.headers["Authorization"])
            if status == 0:
                return  # the connection just closes
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
