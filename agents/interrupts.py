"""The exceptions that steer a session rather than report a fault of the program.

StopSession             the conversation ends and the session with it
├── LimitHit            a limit of time, evaluations, tokens or cost
├── ModelGone           no model will answer any more: a refused key, no quota left, a dead endpoint
├── RecordingOver       a recorded run that is played back has no more replies
└── Interrupted         the user pressed Ctrl-C, or the caller cancelled
GaveUp                  a model says that its step cannot be done, and why
BadReply                a model's answer cannot be used; the text says why, to the model
└── ShortReply          it can be used, and holds less than was asked for
ModelUnavailable        this call got no answer, retries included; another may
└── PromptTooLong       the prompt is larger than the model's window
"""

from __future__ import annotations

from kernel_scientist.sandbox.errors import KernelScientistError

__all__ = [
    "BadReply",
    "GaveUp",
    "Halted",
    "Interrupted",
    "LimitHit",
    "ModelGone",
    "ModelUnavailable",
    "PromptTooLong",
    "RecordingOver",
    "ShortReply",
    "StopSession",
]


class StopSession(Exception):  # noqa: N818 - it steers; nothing is in error
    """The session must end; the message is the sentence that says why."""


class LimitHit(StopSession):
    """A limit is used up: which (`limit`), how much was `used`, what the `maximum` is."""

    def __init__(self, limit: str, used: float, maximum: float, sentence: str) -> None:
        super().__init__(sentence)
        self.limit = limit
        self.used = used
        self.maximum = maximum


class ModelGone(StopSession):
    """No more answers are to be had; `cause` says why, and how the program ends for it."""

    def __init__(self, cause: KernelScientistError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class RecordingOver(StopSession):
    """The recording that answers has no more replies."""


class Interrupted(StopSession):
    """Someone asked the session to stop."""


class Halted(StopSession):
    """Another lane has ended the session, and says why."""


class BadReply(Exception):  # noqa: N818 - as above
    """A model's reply cannot be used; the message goes back to the model for another try."""


class ShortReply(BadReply):
    """The answer holds less than was asked for; it is used where there is no better one."""


class GaveUp(Exception):  # noqa: N818 - it steers; nothing is in error
    """The model says that its step cannot be done; the message is its reason."""


class ModelUnavailable(Exception):  # noqa: N818 - as above
    """A model call failed for good; the message is a sentence for the user."""


class PromptTooLong(ModelUnavailable):
    """The endpoint refused the prompt as too long; `window` is what the model can read, where it said so."""

    def __init__(self, sentence: str, window: int | None) -> None:
        super().__init__(sentence)
        self.window = window
