"""A collector of the tests' own: takes OTLP over HTTP and decodes it with OpenTelemetry's protobuf."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver(ThreadingHTTPServer):
    """`spans` are those received so far, `resources` their resources' attributes; `status` is answered."""

    daemon_threads = True

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.spans: list[Any] = []
        self.resources: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.bodies = b""
        self.arrived = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def named(self, start: str) -> list[Any]:
        return [span for span in self.spans if span.name.startswith(start)]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        receiver = self.server
        assert isinstance(receiver, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        receiver.paths.append(self.path)
        if receiver.status == 200:
            receiver.bodies += body
            request = ExportTraceServiceRequest.FromString(body)
            for group in request.resource_spans:
                receiver.resources.append(attributes(group.resource))
                receiver.spans += [span for scope in group.scope_spans for span in scope.spans]
            receiver.arrived.set()
        self.send_response(receiver.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def attributes(holder: Any) -> dict[str, Any]:
    """The attributes of a span, an event or a resource as Python values."""

    def value(one: Any) -> Any:
        kind = one.WhichOneof("value")
        if kind == "array_value":
            return [value(item) for item in one.array_value.values]
        return getattr(one, kind)

    return {pair.key: value(pair.value) for pair in holder.attributes}


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    """A receiver that listens, in a thread of its own."""
    with Receiver(status) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
