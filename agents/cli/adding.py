"""What ``knowledge add`` and ``retry`` show: progress on stderr, and a table of what became of each."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, final

from .output import echo_all, print_json, remark
from .text import clean, columns, count, duration, one_line

if TYPE_CHECKING:
    from kernel_scientist.knowledge import AddProgress, AddReport, Failure

__all__ = ["SOME_FAILED", "Pace", "report_added", "report_failures", "telling_passages", "watching"]

SOME_FAILED = 6

# Lines in a log say where things stand this often; a terminal's line is always up to date.
_BETWEEN_LINES_S = 5.0
# Before this share is done, what is left cannot be told from what was.
_TELLING_SHARE = 0.02
_SOURCE_WIDTH = 60


@final
class Pace:
    """How fast an adding goes and how long it still takes, by what it has done so far."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._started = now()

    def line(self, progress: AddProgress) -> str:
        """Documents, passages and their rate, the time left, and what is at work."""
        used = self._now() - self._started
        parts = [f"{progress.done} of {count(progress.total, 'document')}", f"{progress.passages} passages"]
        if used > 0 and progress.passages:
            parts.append(f"{progress.passages / used:.1f} passages/s")
        if progress.share >= _TELLING_SHARE and progress.done < progress.total:
            parts.append(f"{duration(used / progress.share - used)} left")
        if progress.item is None:
            parts.append(one_line(_tail(progress.source)))
        return ", ".join(parts)


@contextlib.contextmanager
def watching() -> Generator[Callable[[AddProgress], None]]:
    """Shows what it is called with: a live line on a terminal, now and then a line elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.console import Console
    from rich.status import Status

    pace = Pace()
    with Status("", console=Console(stderr=True, highlight=False)) as status:

        def show(progress: AddProgress) -> None:
            from rich.text import Text

            if progress.item is not None and progress.item.status == "failed":
                status.console.print(Text(_failure(progress), style="red"))
            status.update(Text(clean(pace.line(progress))))

        yield show


@final
class _Lines:
    def __init__(self) -> None:
        self._pace = Pace()
        self._last = time.monotonic()

    def show(self, progress: AddProgress) -> None:
        if progress.item is not None and progress.item.status == "failed" and progress.total > 1:
            remark(_failure(progress))
        if time.monotonic() - self._last >= _BETWEEN_LINES_S:
            self._last = time.monotonic()
            remark(self._pace.line(progress))


def telling_passages() -> Callable[[int, int], None]:
    """Says now and then how many passages of how many have been embedded, and the time left."""
    started = last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN_LINES_S and done < total:
            last = now
            left = duration((now - started) * (total - done) / done)
            remark(f"{done} of {count(total, 'passage')} embedded, {left} left")

    return tell


def _failure(progress: AddProgress) -> str:
    assert progress.item is not None
    return one_line(f"failed: {progress.item.source}: {progress.item.reason}")


def _tail(source: str) -> str:
    return source if len(source) <= _SOURCE_WIDTH else f"…{source[1 - _SOURCE_WIDTH :]}"


def report_added(report: AddReport, as_json: bool, note: str = "") -> int:
    """Print what became of each document, and a `note` on the index; the command's exit code."""
    if note:
        remark(f"Note: {one_line(note)}.")
    counts = {status: report.count(status) for status in ("added", "replaced", "unchanged", "failed")}
    if as_json:
        spent = {"seconds": round(report.seconds, 3), "embedding_s": round(report.embedding_s, 3)}
        print_json({"items": [asdict(item) for item in report.items], "counts": counts, **spent})
    else:
        rows = [
            (
                item.status,
                count(item.chunks, "passage") if item.chunks else "",
                count(item.pages, "page") if item.pages else "",
                one_line(item.source),
                one_line(item.reason),
            )
            for item in report.items
        ]
        echo_all(columns(rows))
        done = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
        times = f" in {report.seconds:.1f} s, {report.embedding_s:.1f} s of it embedding"
        remark(f"{done}{times if report.embedding_s else ''}" if done else "nothing to add")
        if report.failed:
            remark(
                f"{len(report.failed)} of {len(report.items)} could not be added; mend what can be, then run "
                "'kernel-scientist knowledge retry'."
            )
    return SOME_FAILED if report.failed else 0


def report_failures(failures: Sequence[Failure], as_json: bool) -> None:
    """Print what failed and is remembered."""
    if as_json:
        print_json([asdict(failure) for failure in failures])
        return
    if not failures:
        remark("Nothing that failed is remembered.")
    rows = [(one.tried, one_line(one.source), one_line(one.reason)) for one in failures]
    echo_all(columns(rows, header=("tried", "source", "why")) if rows else [])
