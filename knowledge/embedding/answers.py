"""What an embeddings endpoint answers: vectors, or a refusal in one of the forms that services have."""

from __future__ import annotations

import json
import math
import urllib.error
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from kernel_scientist.sandbox.printable import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RefusedError", "rows_of_answer", "said_by"]

_SHOWN = 200
_READ = 1 << 16


class RefusedError(Exception):
    """An HTTP status other than 200; `said` is the service's own words, `wait_s` for how long it asks."""

    def __init__(self, status: int, said: str, wait_s: float | None) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status
        self.said = said
        self.wait_s = wait_s

    @classmethod
    def from_answer(cls, error: urllib.error.HTTPError, hide: Callable[[str], str]) -> RefusedError:
        """From the answer, with what `hide` takes out of a text left out."""
        try:
            raw = error.read(_READ)
        except OSError:
            raw = b""
        if 300 <= error.code < 400:
            raw = f"to {error.headers.get('Location', 'nowhere')}".encode()
        return cls(error.code, hide(said_by(raw)), _seconds(error.headers.get("Retry-After")))


def rows_of_answer(raw: bytes, count: int) -> NDArray[np.float32]:
    """The unit rows of an answer to `count` texts, in their order. Raises `ValueError` that says why not."""
    import numpy as np

    try:
        found: Any = json.loads(raw)
        data = sorted(found["data"], key=lambda one: int(one["index"]))
        indices = [int(one["index"]) for one in data]
        rows: NDArray[np.float32] = np.array([one["embedding"] for one in data], np.float32)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        raise ValueError("its form is another") from None
    if indices != list(range(count)):
        raise ValueError(f"it holds {len(indices)} of {count} vectors")
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError("its vectors have no one length")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ValueError("a vector is zero or holds no numbers")
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


def said_by(raw: bytes) -> str:
    """The words of an error's body, of whichever form, in a few characters."""
    text = raw[:_READ].decode(errors="replace")
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        body = text
    code = ""
    for key in ("error", "message", "detail"):
        if isinstance(body, dict):
            known = cast("dict[str, Any]", body)
            code = str(known.get("code") or code)
            body = known.get(key, known)
    words = body if isinstance(body, str) else json.dumps(body)
    words = f"{words} ({code})" if code and code not in words else words
    return " ".join(printable(words, " ").split())[:_SHOWN]


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None  # a date: the back-off is as good
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
