"""Spans to an OTLP collector over HTTP: in a thread beside a run, or a recorded run at once.

Covered: a collector that is absent, slow, full or broken costs a run no more than `CLOSING_S` at its end, and
is told in one sentence. Not covered: spans lost meanwhile; `transcript export --otlp` sends them again.

OpenTelemetry is an extra: ``pip install 'kernel-scientist[otel]'``. Its own variables hold, such as
``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_EXPORTER_OTLP_TIMEOUT``, ``OTEL_RESOURCE_ATTRIBUTES``.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlsplit

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from .. import events as ev
from ..model_config import without_secrets
from .config import SpansConfig
from .spans import Span, SpanMaker

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["CLOSING_S", "Collector", "LiveSpans", "environment_endpoint", "live_spans", "send_run"]

CLOSING_S = 5.0
"""How long the end of a run waits for the last spans to be taken."""

_PAUSE_S = 30.0
_BATCH = 512
_HELD = 8192
_GATHER_S = 1.0
_PATH = "/v1/traces"
_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

log = logging.getLogger(__name__)


def environment_endpoint(environ: Mapping[str, str] | None = None) -> str | None:
    """The collector that OpenTelemetry's own variables name; ``None`` without one, or where they say no."""
    known = os.environ if environ is None else environ
    off = known.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if off or known.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return None
    full, base = (known.get(name, "").strip() for name in _VARIABLES)
    return full or (base.rstrip("/") + _PATH if base else None)


def _address(url: str) -> str:
    """The address that spans are posted to. Raises `UsageError`."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
        parts = urlsplit("")
    if not sound:
        raise UsageError(
            f"'{without_secrets(url)}' is no address of a collector; give one such as http://localhost:4318."
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "A collector's address must hold no name and password, for it is recorded; "
            "set the variable OTEL_EXPORTER_OTLP_HEADERS instead."
        )
    return url if parts.path.strip("/") else url.rstrip("/") + _PATH


@final
class Collector:
    """An OTLP collector at `url`, over HTTP. Raises `UsageError` and `UnusableEnvironment`."""

    def __init__(self, url: str) -> None:
        self.url = _address(url)
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace.export import SpanExportResult
        except ImportError:
            raise UnusableEnvironment(
                "Spans need OpenTelemetry; install it with: pip install 'kernel-scientist[otel]'"
            ) from None
        # Its own words on every failed attempt would go to stderr where nobody handles them.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        self._exporter = OTLPSpanExporter(endpoint=self.url)
        self._taken = SpanExportResult.SUCCESS
        self._resource = Resource.create({"service.name": "kernel-scientist", "service.version": _version()})

    def send(self, trace_id: int, spans: list[Span]) -> bool:
        """Send `spans`; whether the collector took them. Tries again for the exporter's timeout."""
        batch = [_readable(trace_id, span, self._resource) for span in spans]
        return self._exporter.export(batch) is self._taken

    def close(self) -> None:
        """Give up what is on its way."""
        shutdown: Callable[[], None] = self._exporter.shutdown
        shutdown()


@final
class LiveSpans:
    """The spans of a run while it goes on; `observe` gets its events and never waits or raises."""

    def __init__(self, collector: Collector, *, content: bool = False) -> None:
        self._collector = collector
        self._maker = SpanMaker(content=content)
        self._waiting: queue.Queue[tuple[int, Span] | None] = queue.Queue(_HELD)
        self._lost = 0
        self._thread = threading.Thread(target=self._work, name="spans", daemon=True)
        self._thread.start()

    def observe(self, event: ev.Event) -> None:
        """Take one event of the run."""
        self._put(self._maker.take(event))

    def close(self) -> None:
        """End what is open and send the rest, for `CLOSING_S` at most; says so when spans were lost."""
        self._put(self._maker.close())
        deadline = time.monotonic() + CLOSING_S
        try:
            self._waiting.put(None, timeout=CLOSING_S)
        except queue.Full:
            pass
        else:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._lost += self._waiting.qsize() + 1
        self._collector.close()
        if self._lost:
            log.warning(
                "The collector at %s did not take all spans of the run; once it does, send them with "
                "'kernel-scientist transcript export %s --otlp URL'.",
                self._collector.url, self._maker.run_id or "last",
            )  # fmt: skip

    def _put(self, spans: list[Span]) -> None:
        for span in spans:
            try:
                self._waiting.put_nowait((self._maker.trace_id, span))
            except queue.Full:
                self._lost += 1

    def _work(self) -> None:
        silent_until = 0.0
        ended = False
        while not ended:
            batch, ended = self._gather()
            if not batch:
                continue
            # After a failure nothing is tried for a while: the run's end must not wait for each batch.
            if time.monotonic() < silent_until or not self._collector.send(
                batch[0][0], [span for _, span in batch]
            ):
                self._lost += len(batch)
                silent_until = max(silent_until, time.monotonic() + _PAUSE_S)

    def _gather(self) -> tuple[list[tuple[int, Span]], bool]:
        """What came in within a moment, and whether that was the last."""
        batch: list[tuple[int, Span]] = []
        until = math.inf
        while len(batch) < _BATCH:
            try:
                one = self._waiting.get(
                    timeout=None if math.isinf(until) else max(0.0, until - time.monotonic())
                )
            except queue.Empty:
                break
            if one is None:
                return batch, True
            until = min(until, time.monotonic() + _GATHER_S)
            batch.append(one)
        return batch, False


def live_spans(config: SpansConfig) -> LiveSpans | None:
    """What sends a run's spans, or ``None`` where nobody asked for them.

    Raises `UsageError` and `UnusableEnvironment` for what the configuration asks. What a variable of the
    whole machine asks for and cannot be is told in one sentence, and the run goes on without.
    """
    if config.endpoint is not None:
        return LiveSpans(Collector(config.endpoint), content=config.content)
    named = environment_endpoint()
    if named is None:
        return None
    try:
        return LiveSpans(Collector(named), content=config.content)
    except (UsageError, UnusableEnvironment) as error:
        log.warning("OTEL_EXPORTER_OTLP_ENDPOINT is set, but no spans are sent: %s", error)
        return None


def send_run(events: Iterable[ev.Event], collector: Collector, *, content: bool = False) -> int:
    """Send the spans of a recorded run; how many they are. Raises `UnusableEnvironment`."""
    maker = SpanMaker(content=content)
    batch: list[Span] = []
    sent = 0
    try:
        for event in events:
            batch += maker.take(event)
            if len(batch) >= _BATCH:
                sent += _sent(collector, maker, batch)
                batch = []
        batch += maker.close()
        return sent + _sent(collector, maker, batch)
    finally:
        collector.close()


def _sent(collector: Collector, maker: SpanMaker, batch: list[Span]) -> int:
    if batch and not collector.send(maker.trace_id, batch):
        raise UnusableEnvironment(
            f"The collector at {collector.url} does not take the spans; check the address, and that it "
            "speaks OTLP over HTTP (port 4318, not 4317)."
        )
    return len(batch)


def _version() -> str:
    try:
        return metadata.version("kernel-scientist")
    except metadata.PackageNotFoundError:
        return "not installed as a distribution"


def _readable(trace_id: int, span: Span, resource: Any) -> ReadableSpan:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(span_id: int) -> SpanContext:
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    return ReadableSpan(
        span.name,
        context=context(span.id),
        parent=None if span.parent_id is None else context(span.parent_id),
        resource=resource,
        attributes=span.attributes,
        events=[Event(one.name, one.attributes, one.time_ns) for one in span.events],
        kind=SpanKind.CLIENT if span.kind == "client" else SpanKind.INTERNAL,
        status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=InstrumentationScope("kernel-scientist", _version()),
    )
