"""Progress of a run on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, final

from kernel_scientist.agents import events as ev

from .lines import event_line
from .output import remark
from .text import clean, count, duration, times

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "Standing", "open_display"]

_PATIENCE_S = 2.0


@final
class Standing:
    """Where a run stands: the events so far boiled down to one line."""

    def __init__(self, max_time_s: float | None = None, doing: str = "getting ready") -> None:
        self.max_time_s = max_time_s
        self.started = time.monotonic()
        self.generation = 0
        self.generations = 0
        self.doing = doing
        self.candidates = 0
        self.accepted = 0
        self.best = "none yet"
        self.tokens = 0
        self.estimated = False
        self.cost_usd: float | None = 0.0

    def see(self, event: ev.Event) -> None:
        """Take one event into account."""
        match event:
            case ev.RunStarted():
                self.started = time.monotonic()
                self.generations = event.generations
            case ev.RunResumed():
                self._resumed(event)
            case ev.StopRequested():
                self.doing = "stopping; Ctrl-C again stops at once"
            case ev.GenerationStarted():
                self.generation, self.generations = event.generation, event.generations
            case ev.SpeakerSelected():
                self.doing = f"{event.agent} speaks"
            case ev.CandidateCreated() if event.parent_id is not None:
                self.candidates += 1
            case ev.EvaluationStarted():
                self.doing = f"judging {event.candidate_id} ({event.tier})"
            case ev.EvaluationFinished():
                self._judged(event)
            case ev.BestChanged():
                self.best = f"{event.candidate_id} {times(event.speedup.value)}"
            case ev.ModelCall():
                self._called(event)
            case _:
                pass

    def _resumed(self, event: ev.RunResumed) -> None:
        self.generations, self.generation = event.generations, max(event.interrupted, default=0)
        totals = event.totals
        self.candidates, self.accepted = totals.candidates, totals.accepted
        self.tokens = totals.prompt_tokens + totals.completion_tokens
        self.cost_usd = totals.cost_usd
        self.started = time.monotonic() - totals.seconds

    def _judged(self, event: ev.EvaluationFinished) -> None:
        if self.candidates:
            self.accepted += event.evaluation.accepted
        self.doing = f"judged {event.candidate_id}"

    def _called(self, event: ev.ModelCall) -> None:
        self.tokens += event.usage.total_tokens
        self.estimated |= event.usage.estimated
        if event.cost_usd is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += event.cost_usd

    def line(self) -> str:
        """Generation, who is at work, candidates, best, tokens, cost, time used and left."""
        used = time.monotonic() - self.started
        clock = duration(used)
        if self.max_time_s is not None:
            clock += f", {duration(self.max_time_s - used)} left"
        cost = "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.2f}"
        parts = (
            f"generation {self.generation}/{self.generations}",
            self.doing,
            f"{count(self.candidates, 'candidate')}, {self.accepted} accepted",
            f"best {self.best}",
            f"{'about ' if self.estimated else ''}{self.tokens} tokens, {cost}",
            clock,
        )
        return " · ".join(parts)


class Display(Protocol):
    """Shows events as they come; used as a context manager round the run."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, event: ev.Event) -> None: ...


@final
class PlainDisplay:
    """A line an event, and where the run stands after every judged candidate.

    Where nothing happens for a while at first, it says what the wait is for.
    """

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self._waiting = threading.Timer(_PATIENCE_S, remark, [f"{standing.doing} ..."])
        self._waiting.daemon = True

    def __enter__(self) -> PlainDisplay:
        self._waiting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.cancel()

    def show(self, event: ev.Event) -> None:
        self._waiting.cancel()
        self.standing.see(event)
        line = event_line(event)
        if line is not None:
            remark(f"{duration(time.monotonic() - self.standing.started)}  {line}")
        if isinstance(event, (ev.EvaluationFinished, ev.GenerationStarted)):
            remark(f"      {self.standing.line()}")


@final
class LiveDisplay:
    """Lines that scroll, and below them one line that is kept up to date."""

    def __init__(self, standing: Standing) -> None:
        from rich.console import Console
        from rich.live import Live

        self.standing = standing
        self._live: Live = Live(
            get_renderable=self._status,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> LiveDisplay:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, event: ev.Event) -> None:
        from rich.text import Text

        self.standing.see(event)
        line = event_line(event)
        if line is not None:
            self._live.console.print(Text(line, style=_STYLES.get(event.kind, "")))

    def _status(self) -> Text:
        from rich.text import Text

        return Text(clean(self.standing.line()), style="bold", no_wrap=True, overflow="ellipsis")


_STYLES = {
    "generation_started": "bold",
    "best_changed": "green",
    "comparison_finished": "green",
    "passages_retrieved": "dim",
    "candidate_created": "dim",
    "evaluation_started": "dim",
    "limit_reached": "yellow",
    "stop_requested": "yellow",
    "error": "red",
}


def open_display(max_time_s: float | None) -> Display:
    """The display that suits stderr."""
    from .knowledge_options import FIRST_USE, is_first_use

    standing = Standing(max_time_s, FIRST_USE if is_first_use() else "getting ready")
    return LiveDisplay(standing) if sys.stderr.isatty() else PlainDisplay(standing)
