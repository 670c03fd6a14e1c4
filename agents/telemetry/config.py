"""The configuration of spans."""

from __future__ import annotations

from ..model_config import Table

__all__ = ["SpansConfig"]


class SpansConfig(Table):
    """Where a run's spans go while it goes on. `endpoint` is a collector's address, such as
    ``http://localhost:4318``; ``None``: what ``OTEL_EXPORTER_OTLP_ENDPOINT`` says, else nowhere.
    With `content` they hold also what was said, asked and answered."""

    endpoint: str | None = None
    content: bool = False
