"""A large run for tests and measurements: real events, each of plausible size, and the candidates' files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import (
    Avenue,
    CandidateProposal,
    Choice,
    Experiment,
    Finding,
    Hypotheses,
    Selection,
)
from kernel_scientist.agents.run import BestKernel, RunInfo
from kernel_scientist.tools.evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KERNEL = (
    "/* plan\n[constants]\nTILE = {tile}\n*/\n#include <hip/hip_runtime.h>\n" + "// a line of code\n" * 40
)


def write_big_run(runs_dir: Path, *, candidates: int, events: int, finished: bool = True) -> Path:
    """Write a run with `candidates` besides the start and at least `events` events; returns its folder."""
    run_id = "20260102-030405-678_matmul_b16b16"
    folder = runs_dir / run_id
    folder.mkdir(parents=True)
    with (folder / "events.jsonl").open("w", encoding="utf-8") as file:
        writer = _Writer()
        for event in writer.run(run_id, candidates, events, finished):
            file.write(event.model_dump_json() + "\n")
    for number in range(candidates + 1):
        place = folder / f"candidates/{number:04d}"
        place.mkdir(parents=True)
        (place / "kernel.hip").write_text(KERNEL.format(tile=number))
    best = BestKernel(
        candidate_id=f"{candidates:04d}", path=f"candidates/{candidates:04d}/kernel.hip",
        speedup=_interval(candidates), tier="confirm",
    )  # fmt: skip
    info = RunInfo(
        id=run_id, status="improved" if finished else "running", stop_reason="all generations are done",
        started=START, problem="matmul", kernel="tiled.hip", target="cpu", models={"coder": "offline"},
        generations=writer.generation, best=best if finished else None, totals=ev.Totals(),
    )  # fmt: skip
    (folder / "run.json").write_text(info.model_dump_json())
    return folder


def more_events(start: int, count: int) -> str:
    """`count` further lines of a record whose last event is number `start`."""
    writer = _Writer()
    writer.seq = start
    return "".join(writer.call("coder").model_dump_json() + "\n" for _ in range(count))


def _interval(number: int) -> Interval:
    value = 1 + number / 1000
    return Interval(value, value * 0.97, value * 1.03, 0.99)


def _evaluation(number: int, *, tier: str = "screen") -> Evaluation:
    verdict = Verdict.ACCEPTED if number % 4 != 1 else Verdict.COMPILE_ERROR
    shape = {"m": 64, "n": 64, "k": 32}
    timings = tuple(
        ShapeTiming(
            shape | {"k": 32 << place}, 800.0, 780.0, 830.0, 30, 4, 2600.0, _interval(number), bound_us=40.0
        )
        for place in range(4)
    )
    passed = "5 distributions, blocks in both orders"
    return Evaluation(
        verdict, "" if verdict is Verdict.ACCEPTED else "kernel.hip:7: error: no such thing", tier, "cpu",
        "Test CPU", "bubblewrap", "base-key", f"key-{number}",
        checks=tuple(Check(f"test shape {n}", True, passed) for n in range(9)),
        timings=timings if verdict is Verdict.ACCEPTED else (),
        speedup=_interval(number) if verdict is Verdict.ACCEPTED else None,
    )  # fmt: skip


class _Writer:
    def __init__(self) -> None:
        self.seq = 0
        self.generation = 0

    def _made(self, kind: type[Any], **fields: Any) -> Any:
        self.seq += 1
        time = START + timedelta(seconds=self.seq / 10)
        return kind(seq=self.seq, time=time, generation=self.generation, **fields)

    def run(self, run_id: str, candidates: int, events: int, finished: bool) -> Iterator[ev.Event]:
        """A generation has three candidates; what is missing in events are model calls, spread evenly."""
        yield self._made(
            ev.RunStarted, run_id=run_id, problem="matmul", kernel="tiled.hip", target="cpu",
            models={"coder": "offline"}, generations=-(-candidates // 3), experiments=3, limits={},
            versions={},
        )  # fmt: skip
        yield from self._candidate(0, None)
        calls = max(1, -(-(events - 6 * candidates - 4 * candidates // 3) // candidates))
        for number in range(1, candidates + 1):
            if number % 3 == 1:
                yield from self._opening(number)
            yield self._made(ev.SpeakerSelected, agent="coder", slot=(number - 1) % 3, attempt=1)
            for _ in range(calls):
                yield self.call("coder")
            yield from self._candidate(number, max(0, number - 3))
            yield from self._told(number)
        self.generation = 0
        if finished:
            yield from self._ending(candidates)

    def call(self, agent: str) -> ev.ModelCall:
        """A model call with a request and an answer of some length."""
        words = "Tiles were made larger, and the loop over k was unrolled. " * 8
        made: ev.ModelCall = self._made(
            ev.ModelCall, agent=agent, purpose="code", model="offline", seconds=0.5, cost_usd=0.0,
            usage=ev.Usage(prompt_tokens=1000, completion_tokens=100),
            request=({"type": "UserMessage", "content": words * 2, "source": "manager"},),
            response={"content": words, "finish_reason": "stop"},
        )  # fmt: skip
        return made

    def _opening(self, number: int) -> Iterator[ev.Event]:
        self.generation += 1
        yield self._made(
            ev.GenerationStarted, generations=2000, best_id=f"{max(0, number - 1):04d}", totals=ev.Totals()
        )
        passage = ev.CitedPassage(id=f"guide#{number % 50}", title="A guide", text="LDS has 32 banks. " * 20)
        yield self._made(ev.PassagesRetrieved, agent="researcher", query="tiles", passages=(passage,))
        choice = Selection(base_id=f"{max(0, number - 3):04d}", reasons="It is the fastest.")
        yield self._made(ev.MessageSent, agent="selector", content=choice, text=choice.text)
        experiments = tuple(
            Experiment(
                description=f"Idea {number + place}: larger tiles", rubric=("TILE grows",), uplift_min=1,
                uplift_max=20, innovation=30, citations=(passage.id,),
            )
            for place in range(3)
        )  # fmt: skip
        chosen = tuple(Choice(experiment=place, criterion="most innovative") for place in range(3))
        plan = Hypotheses(avenues=(Avenue(title="Tiling"),), experiments=experiments, chosen=chosen)
        yield self._made(ev.MessageSent, agent="researcher", content=plan, text=plan.text)

    def _candidate(self, number: int, parent: int | None) -> Iterator[ev.Event]:
        name = f"{number:04d}"
        yield self._made(
            ev.CandidateCreated, candidate_id=name, parent_id=None if parent is None else f"{parent:04d}",
            slot=None if parent is None else (number - 1) % 3, path=f"candidates/{name}/kernel.hip", key=name,
            diff="-TILE = 16\n+TILE = 32\n" * 20,
        )  # fmt: skip
        yield self._made(ev.EvaluationStarted, candidate_id=name, tier="screen")
        yield self._made(
            ev.EvaluationFinished, candidate_id=name, evaluation=_evaluation(number), seconds=5.0
        )

    def _told(self, number: int) -> Iterator[ev.Event]:
        name = f"{number:04d}"
        said = CandidateProposal(
            candidate_id=name, slot=(number - 1) % 3, attempt=1, report="TILE is larger."
        )
        yield self._made(ev.MessageSent, agent="coder", content=said, text=said.text)
        verdict = _evaluation(number).verdict
        finding = Finding(
            candidate_id=name, slot=(number - 1) % 3, verdict=verdict.value, tried="Larger tiles.",
            happened="It ran.", predicted_min=1, predicted_max=20, measured_uplift=0.3, calibration="below",
        )  # fmt: skip
        yield self._made(ev.MessageSent, agent="benchmarker", content=finding, text=finding.text)
        if number % 100 == 0:
            yield self._made(
                ev.BestChanged,
                candidate_id=name,
                previous_id="0000",
                speedup=_interval(number),
                tier="screen",
            )

    def _ending(self, candidates: int) -> Iterator[ev.Event]:
        start, best = _evaluation(0), _evaluation(candidates * 4, tier="confirm")
        comparison = Comparison(start, best, best.timings, _interval(candidates), "faster")
        yield self._made(
            ev.ComparisonFinished, a_id="0000", b_id=f"{candidates:04d}", comparison=comparison,
            improved=True, seconds=30.0,
        )  # fmt: skip
        yield self._made(
            ev.RunFinished, status="improved", stop_reason="all generations are done", exit_code=0,
            best_id=f"{candidates:04d}", totals=ev.Totals(),
        )  # fmt: skip
