"""Text that a candidate had a part in, made fit for a terminal, a prompt or a page."""

from __future__ import annotations

from kernel_scientist.sandbox.printable import printable, without_escapes

__all__ = ["clean", "excerpt", "quoted"]

_EXCERPT = 80


def clean(text: str, limit: int = 2000) -> str:
    """`text` without characters that steer a terminal or hide from a reader, cut in the middle at `limit`."""
    kept = printable(without_escapes(text.replace("\r\n", "\n")), "\ufffd")
    if len(kept) <= limit:
        return kept
    half = max(0, limit - 40) // 2
    return f"{kept[:half]}\n... {len(kept) - 2 * half} characters left out ...\n{kept[len(kept) - half :]}"


def excerpt(text: str) -> str:
    """`text` on one line for a sentence: what is not printable escaped, and the middle left out of much."""
    # Cut before it is escaped: it may be very long.
    half = _EXCERPT // 2
    short = text if len(text) <= _EXCERPT else f"{text[: half - 2]} ... {text[len(text) - half + 3 :]}"
    if short.isprintable():
        return short
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def quoted(text: str) -> str:
    """`text` with a mark before every line but the first, which stands behind words of ours."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"  | {line}".rstrip() for line in rest)])
