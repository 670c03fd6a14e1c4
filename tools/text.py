"""Text that a candidate had a part in, made fit for a terminal, a prompt or a page."""

from __future__ import annotations

import unicodedata

__all__ = ["clean"]

# Controls, formats (direction marks, zero width), surrogates, private use, unassigned.
_UNREADABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def clean(text: str, limit: int = 2000) -> str:
    """`text` without characters that steer a terminal or hide from a reader, cut in the middle at `limit`."""
    kept = "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _UNREADABLE else "\ufffd"
        for char in text.replace("\r\n", "\n")
    )
    if len(kept) <= limit:
        return kept
    half = max(0, limit - 40) // 2
    return f"{kept[:half]}\n... {len(kept) - 2 * half} characters left out ...\n{kept[len(kept) - half :]}"
