"""Text for people: control characters removed, figures with units and intervals, aligned columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_scientist.sandbox.printable import printable, without_escapes
from kernel_scientist.tools.evaluation import Interval

__all__ = [
    "clean",
    "columns",
    "count",
    "cut",
    "duration",
    "indent",
    "interval",
    "one_line",
    "percent",
    "quote",
    "shape_text",
    "size_text",
    "time_text",
    "times",
]

_QUOTED_LINES, _QUOTED_WIDTH = 200, 500


def clean(text: str) -> str:
    """Remove terminal escape sequences and hidden characters; tabs and newlines stay."""
    return printable(without_escapes(text.replace("\r\n", "\n")))


def one_line(text: str, limit: int | None = None) -> str:
    """The cleaned text with every run of white space as one blank, at most `limit` characters of it."""
    line = " ".join(clean(text).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def quote(text: str, by: str = "  ") -> str:
    """The cleaned text marked as somebody's words: ``| `` before each line, so that none passes for ours."""
    lines = clean(text).strip().split("\n")
    shown = [f"{by}| {cut(line, _QUOTED_WIDTH)}".rstrip() for line in lines[:_QUOTED_LINES]]
    if len(lines) > _QUOTED_LINES:
        shown.append(f"{by}({len(lines) - _QUOTED_LINES} more lines)")
    return "\n".join(shown)


def cut(line: str, width: int) -> str:
    """The line, or its first `width` characters and how many there are more."""
    return line if len(line) <= width else f"{line[:width]}… ({len(line) - width} more characters)"


def count(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def indent(text: str, by: str = "  ") -> str:
    """The text with `by` before every line that is not empty."""
    return "\n".join(by + line if line else line for line in text.splitlines())


def time_text(microseconds: float | None) -> str:
    """A time with the unit that suits its size; ``not measured`` for ``None``."""
    if microseconds is None:
        return "not measured"
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3g} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds:.3g} µs"


def size_text(size: int) -> str:
    """Bytes with the unit that suits their number."""
    if size >= 1e6:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e3:.1f} kB" if size >= 1e3 else count(size, "byte")


def duration(seconds: float) -> str:
    """Seconds as ``m:ss`` or ``h:mm:ss``."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def times(value: float | None) -> str:
    """A ratio such as ``3.21x``; ``not measured`` for ``None``."""
    return "not measured" if value is None else f"{value:.2f}x"


def interval(value: Interval | None) -> str:
    """A ratio with its interval: ``3.21x (3.10x to 3.32x at 99 %)``."""
    if value is None:
        return "not measured"
    return f"{value.value:.2f}x ({value.low:.2f}x to {value.high:.2f}x at {value.level * 100:.3g} %)"


def percent(share: float | None) -> str:
    """A share of one as ``12.3 %``; ``not known`` for ``None``."""
    return "not known" if share is None else f"{share * 100:.1f} %"


def shape_text(shape: Mapping[str, int]) -> str:
    """A shape as ``m=512 n=512 k=512``."""
    return " ".join(f"{name}={size}" for name, size in shape.items())


def columns(
    rows: Sequence[Sequence[str]], *, header: Sequence[str] | None = None, gap: str = "  "
) -> list[str]:
    """Lines with the cells of each column aligned on the left."""
    table = [*([list(header)] if header else []), *(list(row) for row in rows)]
    if not table:
        return []
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]
