"""The exceptions that steer a session rather than report a fault of the program.

StopSession             the conversation ends and the session with it
├── LimitHit            a limit of time, evaluations, tokens or cost
└── Interrupted         the user pressed Ctrl-C, or the caller cancelled
BadReply                a model's answer cannot be used; the text says why, to the model
ModelUnavailable        this call got no answer, retries included; another may
"""

from __future__ import annotations

__all__ = ["BadReply", "Interrupted", "LimitHit", "ModelUnavailable", "StopSession"]


class StopSession(Exception):  # noqa: N818 - it steers; nothing is in error
    """The session must end; the message is the sentence that says why."""


class LimitHit(StopSession):
    """A limit is used up: which (`limit`), how much was `used`, what the `maximum` is."""

    def __init__(self, limit: str, used: float, maximum: float, sentence: str) -> None:
        super().__init__(sentence)
        self.limit = limit
        self.used = used
        self.maximum = maximum


class Interrupted(StopSession):
    """Someone asked the session to stop."""


class BadReply(Exception):  # noqa: N818 - as above
    """A model's reply cannot be used; the message goes back to the model for another try."""


class ModelUnavailable(Exception):  # noqa: N818 - as above
    """A model call failed for good; the message is a sentence for the user."""
