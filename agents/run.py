"""A run on disk, for reading: what was asked, what happened, the candidates and the best of them.

<time>_<problem>_<id>/
  run.json         versions, resolved config, problem, device, status, why it stopped
  running.lock     held while the session goes on; one that is left and free means a process that was killed
  events.jsonl     one event a line; a damaged line (a writer killed in mid-write) is passed over
  candidates/0007/ kernel.hip, evaluation.json, compile.log, report.md
  best/            the winning kernel and its evidence
  report.md        all of it for a colleague to read, written when the session ends
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained, is_free, open_regular, read_regular
from kernel_scientist.tools.evaluation import Comparison, Evaluation, Interval

from . import events as ev
from .messages import Experiment, Finding, Hypotheses, RubricPoint

if TYPE_CHECKING:
    import pandas

__all__ = ["BASELINE_ID", "BestKernel", "Candidate", "Run", "RunInfo", "RunStatus", "list_runs"]

BASELINE_ID = "0000"

LOCK_FILE = "running.lock"
PROCESS_GONE = "the process is gone"
"""The stop reason of a run whose process ended without a word."""

# Either makes a folder a run; one that lacks the other is damaged.
_MARKS = ("run.json", "events.jsonl")
# A megabyte is much for either.
_MOST_BYTES = 1 << 26

RunStatus = Literal["running", "improved", "not_improved", "limit", "interrupted", "failed"]


class BestKernel(BaseModel):
    """The winner as ``run.json`` names it; `path` is relative to the run folder."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    candidate_id: str
    path: ev.PathInRun
    speedup: Interval
    tier: str


class RunInfo(BaseModel):
    """The contents of ``run.json``. Times are UTC; `exit_code` is ``None`` while the run goes on."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings")
    id: str
    status: RunStatus
    stop_reason: str = ""
    exit_code: int | None = None
    started: datetime
    finished: datetime | None = None
    versions: dict[str, str] = {}
    config: dict[str, Any] = {}
    problem: str
    problem_path: str = ""
    problem_key: str = ""
    kernel: str
    kernel_key: str = ""
    target: str
    device: str = ""
    sandbox: str = ""
    models: dict[str, str] = {}
    prices: dict[str, Any] = {}
    prompts: dict[str, str] = {}
    policy: str = "paper"
    seed: int | None = None
    generations: int = 0
    generation: int = 0
    totals: ev.Totals = ev.Totals()
    best: BestKernel | None = None

    @field_validator("problem", "problem_path", "kernel", "target")
    @classmethod
    def _can_be_a_path(cls, value: str) -> str:
        if "\0" in value:
            raise ValueError("it holds a null character, which no path can")
        return value


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kernel of a run with all that is known of it; ``0000`` is the starting kernel.

    `status` is ``created`` until it was judged. `path` is its ``kernel.hip``. `evidence` is the event of its
    evaluation, `twin_id` the candidate of the same program whose evaluation it was given. `rubric` is the
    Coder's `report` point by point.
    """

    id: str
    parent_id: str | None
    reference_id: str | None
    generation: int
    slot: int | None
    attempt: int
    status: Literal["created", "accepted", "failed"]
    path: Path
    key: str
    diff: str
    report: str
    evaluation: Evaluation | None
    experiment: Experiment | None
    finding: Finding | None
    twin_id: str | None = None
    evidence: int | None = None
    rubric: tuple[RubricPoint, ...] = ()

    @property
    def verdict(self) -> str | None:
        return None if self.evaluation is None else self.evaluation.verdict.value

    @property
    def source(self) -> str:
        return read_regular(self.path, _MOST_BYTES).decode("utf-8").replace("\r\n", "\n")

    def recorded_source(self) -> str:
        """The source, which must be there. Raises `UsageError`."""
        try:
            return self.source
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path}: cannot be read ({error}), so this run is damaged.") from None


@final
class Run:
    """A recorded run. Reading is always from disk, so a run still going on can be watched."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, which: str | Path = "last", *, runs_dir: str | Path = "runs") -> Run:
        """Open a run by ``last``, id, unique prefix of an id, or path. Raises `UsageError`."""
        path = Path(which)
        if any((path / mark).is_file() for mark in _MARKS):
            return cls(path)
        runs = list_runs(runs_dir)
        if not runs:
            raise UsageError(f"There is no run in {runs_dir}; make one with 'kernel-scientist run matmul'.")
        if str(which) == "last":
            return runs[-1]
        matches = [run for run in runs if run.id == str(which)] or [
            run for run in runs if run.id.startswith(str(which)) or run.id.rpartition("_")[2] == str(which)
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            names = ", ".join(run.id for run in matches[:4])
            raise UsageError(
                f"'{which}' names {len(matches)} runs in {runs_dir} ({names}); give more of the id."
            )
        raise UsageError(f"There is no run '{which}' in {runs_dir}; see 'kernel-scientist transcript list'.")

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def info(self) -> RunInfo:
        """``run.json`` as it is now; a run whose process is gone is interrupted (`PROCESS_GONE`).

        Raises `UsageError` when it is missing or damaged.
        """
        file = self.path / "run.json"
        try:
            info = RunInfo.model_validate_json(read_regular(file, _MOST_BYTES))
        except FileNotFoundError:
            raise UsageError(
                f"{file}: is missing, so this run is damaged; its events.jsonl can still be read as text."
            ) from None
        except OSError as error:
            raise UsageError(f"{file}: cannot be read ({error.strerror}).") from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            where = f" at '{place}'" if place else ""
            raise UsageError(f"{file}: is damaged{where}: {first['msg']}.") from None
        if info.status == "running" and is_free(self.path / LOCK_FILE):
            return info.model_copy(update={"status": "interrupted", "stop_reason": PROCESS_GONE})
        return info

    @property
    def is_over(self) -> bool:
        """Whether ``run.json`` says how the run ended, or that it was stopped."""
        file = self.path / "run.json"
        try:
            return RunInfo.model_validate_json(read_regular(file, _MOST_BYTES)).status != "running"
        except (OSError, ValueError):
            return False

    @property
    def confirmation(self) -> Comparison | None:
        """The fresh pairs that the best kernel's speedup is from; ``None`` when there were none."""
        best = self.info.best
        if best is None or best.tier != "confirm":
            return None
        found = None
        for event in self.events():
            if isinstance(event, ev.ComparisonFinished) and event.b_id == best.candidate_id:
                found = event.comparison
        return found

    @property
    def damage(self) -> str:
        """Why ``run.json`` cannot be read, as a sentence; empty when it can be."""
        try:
            _ = self.info
        except UsageError as error:
            return str(error)
        return ""

    def events(self, *, start: int = 0) -> Iterator[ev.Event]:
        """The events whose `seq` is above `start`; damaged and unfinished lines are passed over."""
        file = self.path / "events.jsonl"
        if not file.exists():
            return
        with explained("read the record", file), os.fdopen(open_regular(file), "rb") as lines:
            for line in lines:
                event = _parse(line)
                if event is not None and event.seq > start:
                    yield event

    @cached_property
    def damaged_lines(self) -> int:
        """How many lines of ``events.jsonl`` are not events: normally none, one after a kill."""
        file = self.path / "events.jsonl"
        if not file.exists():
            return 0
        with explained("read the record", file), os.fdopen(open_regular(file), "rb") as lines:
            return sum(_parse(line) is None for line in lines)

    def record_faults(self) -> list[str]:
        """What is wrong with ``events.jsonl``, as sentences; normally nothing."""
        file = self.path / "events.jsonl"
        if not file.exists():
            return [f"The record {file} is missing; what the agents did cannot be shown."]
        if not file.stat().st_size:
            return [f"The record {file} is empty; what the agents did cannot be shown."]
        damaged = self.damaged_lines
        lines = "1 damaged line" if damaged == 1 else f"{damaged} damaged lines"
        return [f"{lines} of {file} passed over."] if damaged else []

    def missing_files(self, kernels: Iterable[str] | None = None) -> list[str]:
        """Which kernels that the run names are not in its folder, as sentences; normally none.

        `kernels` are the paths of all candidates, where they are known already.
        """
        if kernels is None:
            kernels = [str(one.path) for one in self.candidates()]
        named = [self.path / one for one in kernels]
        if not self.damage and self.info.best is not None:
            named.append(self.path / self.info.best.path)
        gone = [path for path in named if not path.is_file()]
        if not gone:
            return []
        more = f" and {len(gone) - 1} more of its kernels are" if len(gone) > 1 else " is"
        return [f"{gone[0]}{more} missing from the run's folder."]

    def candidates(self) -> list[Candidate]:
        """Every candidate in the order of creation, the starting kernel first."""
        return collect_candidates(self.path, self.events())

    def candidates_frame(self) -> pandas.DataFrame:
        """The candidates as a data frame with the columns `frames.COLUMNS`.

        Raises `UnusableEnvironment` without pandas.
        """
        from .frames import candidates_frame

        return candidates_frame([self])

    @property
    def best(self) -> Candidate | None:
        """The candidate that ``run.json`` names best; ``None`` when nothing beat the baseline."""
        best = self.info.best
        if best is None:
            return None
        return next((one for one in self.candidates() if one.id == best.candidate_id), None)


def list_runs(runs_dir: str | Path = "runs") -> list[Run]:
    """The runs in a folder, damaged ones too, oldest first; an absent folder holds none.

    Raises `UsageError` where it is no folder, or may not be read.
    """
    folder = Path(runs_dir)
    if not folder.exists():
        return []
    with explained("read the runs", folder):
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [Run(path) for path in paths if any((path / mark).is_file() for mark in _MARKS)]


def collect_candidates(folder: Path, events: Iterator[ev.Event]) -> list[Candidate]:
    """The candidates that `events` tell of; files are looked for under `folder`."""
    made: dict[str, ev.CandidateCreated] = {}
    evaluations: dict[str, ev.EvaluationFinished] = {}
    findings: dict[str, Finding] = {}
    plans: dict[int, Hypotheses] = {}
    for event in events:
        match event:
            case ev.CandidateCreated():
                made[event.candidate_id] = event
            case ev.EvaluationFinished():
                evaluations[event.candidate_id] = event
            case ev.MessageSent(content=Finding() as finding):
                findings[finding.candidate_id] = finding
            case ev.MessageSent(content=Hypotheses() as plan):
                plans[event.generation] = plan
            case _:
                pass
    return [
        _candidate(folder, one, evaluations.get(name), findings.get(name), plans.get(one.generation))
        for name, one in made.items()
    ]


def _candidate(
    folder: Path,
    created: ev.CandidateCreated,
    judged: ev.EvaluationFinished | None,
    finding: Finding | None,
    plan: Hypotheses | None,
) -> Candidate:
    experiment = None
    if plan is not None and created.slot is not None and created.slot < len(plan.chosen):
        experiment = plan.experiments[plan.chosen[created.slot].experiment]
    evaluation = None if judged is None else judged.evaluation
    status: Literal["created", "accepted", "failed"] = "created"
    if evaluation is not None:
        status = "accepted" if evaluation.accepted else "failed"
    return Candidate(
        id=created.candidate_id,
        parent_id=created.parent_id,
        reference_id=created.reference_id,
        generation=created.generation,
        slot=created.slot,
        attempt=created.attempt,
        status=status,
        path=folder / created.path,
        key=created.key,
        diff=created.diff,
        report=created.report,
        evaluation=evaluation,
        experiment=experiment,
        finding=finding,
        twin_id=None if judged is None else judged.reused_from,
        evidence=None if judged is None else judged.seq,
        rubric=created.rubric,
    )


def _parse(line: bytes) -> ev.Event | None:
    if not line.endswith(b"\n"):
        return None
    try:
        return ev.parse_event(line)
    except ValueError:
        return None
