"""Tags as people give them."""

from __future__ import annotations

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.printable import printable

__all__ = ["checked_tag"]

_LONGEST = 100


def checked_tag(tag: str) -> str:
    """The tag without blanks round it. Raises `UsageError` for one that could not be read or typed."""
    short = tag.strip()
    if not short:
        raise UsageError("A tag is empty; give a word, or leave it out.")
    if len(short) > _LONGEST or "\n" in short or "\t" in short or printable(short) != short:
        raise UsageError(
            f"The tag '{printable(short, ' ')[:60]}' holds characters that are not seen, or more than "
            f"{_LONGEST}; give a short word."
        )
    return short
