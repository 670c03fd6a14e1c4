"""What the agents say to one another: the typed contents of a conversation's messages.

Each content carries a `type` tag, so that a recorded message can be read back without knowing who spoke.
Uplifts are percent over the Base: ``(time of Base / time of candidate - 1) * 100``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "Avenue",
    "CandidateProposal",
    "Choice",
    "Content",
    "EvaluationFailure",
    "Experiment",
    "Finding",
    "GenerationTask",
    "Hypotheses",
    "Refusal",
    "RubricPoint",
    "RubricStatus",
    "Selection",
    "StepFailed",
    "Stopped",
]


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings")


class GenerationTask(_Content):
    """What opens a conversation: which generation of how many, and how many tries a failure is worth."""

    type: Literal["generation_task"] = "generation_task"
    generation: int
    generations: int
    experiments: int
    build_repairs: int
    result_repairs: int

    @property
    def text(self) -> str:
        return f"Generation {self.generation} of {self.generations}: find a faster kernel."


class Selection(_Content):
    """The Selector's choice: the kernel to build on and a contrasting one to learn from.

    A search policy may have made it; `goal` is what it asks the Researcher to look for.
    """

    type: Literal["selection"] = "selection"
    base_id: str
    reference_id: str | None = None
    reasons: str
    goal: str = ""
    chosen_by: Literal["model", "policy"] = "model"

    @property
    def text(self) -> str:
        return f"Base {self.base_id}, Reference {self.reference_id or 'none'}. {self.reasons}"


class Avenue(_Content):
    """A direction that may make the Base faster."""

    title: str
    rationale: str = ""


class Experiment(_Content):
    """One concrete change with its predicted uplift (percent over the Base) and what it rests on."""

    description: str
    rubric: tuple[str, ...]
    strategy: str = "other"
    uplift_min: float
    uplift_max: float
    innovation: float = Field(ge=0, le=100)
    citations: tuple[str, ...] = ()


class Choice(_Content):
    """An experiment that will run (`experiment` indexes the list) and the criterion that chose it."""

    experiment: int
    criterion: str


class Refusal(_Content):
    """An experiment that does not run because it repeats one that was tried (`candidate_id`), or another of
    the same list (`repeats`); `similarity` is the cosine of their meanings."""

    experiment: int
    candidate_id: str | None = None
    repeats: int | None = None
    similarity: float

    @property
    def text(self) -> str:
        what = (
            f"candidate {self.candidate_id}" if self.candidate_id else f"experiment {(self.repeats or 0) + 1}"
        )
        return f"repeats {what} (similarity {self.similarity:.2f})"


class Hypotheses(_Content):
    """The Researcher's avenues and experiments, which of them run, and which are `refused` as repetitions.

    `nothing_to_try` is the reason when there is no experiment at all. `asked_avenues` and `asked_experiments`
    are how many were asked for (``None``: not recorded), `fewer` is why there are not so many, and `surplus`
    counts the experiments beyond, which were left out.
    """

    type: Literal["hypotheses"] = "hypotheses"
    avenues: tuple[Avenue, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    chosen: tuple[Choice, ...] = ()
    refused: tuple[Refusal, ...] = ()
    nothing_to_try: str | None = None
    asked_avenues: int | None = None
    asked_experiments: int | None = None
    fewer: str = ""
    surplus: int = 0

    @model_validator(mode="after")
    def _names_what_it_lists(self) -> Hypotheses:
        named = [one.experiment for one in self.chosen] + [one.experiment for one in self.refused]
        named += [one.repeats for one in self.refused if one.repeats is not None]
        if any(not 0 <= index < len(self.experiments) for index in named):
            raise ValueError("an experiment is named that is not in the list")
        return self

    @property
    def counts(self) -> str:
        """A sentence where there are not as many avenues or experiments as were asked for, else nothing."""
        said: list[str] = []
        have = (
            (len(self.avenues), self.asked_avenues or 0, "avenues"),
            (len(self.experiments), self.asked_experiments or 0, "experiments"),
        )
        short = [f"{asked} {what}" for count, asked, what in have if count < asked]
        if short and not self.nothing_to_try:
            said.append(f"{' and '.join(short)} were asked for{f' ({self.fewer})' if self.fewer else ''}")
        if self.surplus:
            said.append(
                f"{self.surplus} more than asked for {'was' if self.surplus == 1 else 'were'} left out"
            )
        return f"{'; '.join(said)}." if said else ""

    @property
    def text(self) -> str:
        if self.nothing_to_try:
            return self.nothing_to_try
        avenues = f"{len(self.avenues)} avenues, " if self.avenues else ""
        counts = f" {self.counts}" if self.counts else ""
        several = "" if len(self.experiments) == 1 else "s"
        lines = [f"{avenues}{len(self.experiments)} experiment{several};{counts} running:"]
        for number, choice in enumerate(self.chosen, start=1):
            one = self.experiments[choice.experiment]
            predicted = f"predicted {one.uplift_min:+.0f} % to {one.uplift_max:+.0f} %"
            cited = f"; cites {', '.join(one.citations)}" if one.citations else ""
            lines.append(
                f"{number}. ({choice.criterion}) {one.description} "
                f"[{one.strategy}; {predicted}, innovation {one.innovation:.0f}{cited}]"
            )
        lines += [f"Not run: experiment {one.experiment + 1} {one.text}." for one in self.refused]
        return "\n".join(lines)


RubricStatus = Literal["done", "changed", "not done", "not reported"]


class RubricPoint(_Content):
    """What the Coder says of one point of the rubric (`item`): whether it was done, why not, or how else."""

    item: str
    status: RubricStatus
    why: str = ""

    @property
    def text(self) -> str:
        return f"{self.status}: {self.item}{f' ({self.why})' if self.why else ''}"


class CandidateProposal(_Content):
    """The Coder's candidate, named by id only, with the report of what was really implemented.

    `slot` is the number of the chosen experiment (from 0), `attempt` counts from 1. `rubric` is the report
    point by point; empty in runs of before there was one.
    """

    type: Literal["candidate_proposal"] = "candidate_proposal"
    candidate_id: str
    slot: int
    attempt: int
    report: str
    rubric: tuple[RubricPoint, ...] = ()

    @property
    def text(self) -> str:
        points = [f"{number}. {one.text}" for number, one in enumerate(self.rubric, start=1)]
        head = f"Candidate {self.candidate_id} (attempt {self.attempt}). {self.report}"
        return "\n".join([head, *points])


class EvaluationFailure(_Content):
    """The Benchmarker hands a failed candidate back for repair; `evidence` is the judge's."""

    type: Literal["evaluation_failure"] = "evaluation_failure"
    candidate_id: str
    slot: int
    attempt: int
    verdict: str
    evidence: str
    tries_left: int

    @property
    def text(self) -> str:
        return f"Candidate {self.candidate_id}: {self.verdict}; {self.tries_left} tries left. {self.evidence}"


class Finding(_Content):
    """What an experiment taught. Measured figures come from the judge, never from a model.

    `calibration` compares `measured_uplift` with the predicted range; `author` is ``agent`` when the
    model gave no usable finding and the figures alone had to speak.
    """

    type: Literal["finding"] = "finding"
    candidate_id: str
    slot: int
    verdict: str
    tried: str
    happened: str
    next: str = ""
    predicted_min: float
    predicted_max: float
    measured_uplift: float | None = None
    speedup: float | None = None
    time_us: float | None = None
    calibration: Literal["below", "within", "above", "not measured"] = "not measured"
    author: Literal["model", "agent"] = "model"

    @property
    def text(self) -> str:
        measured = "not measured" if self.measured_uplift is None else f"{self.measured_uplift:+.1f} %"
        return (
            f"Candidate {self.candidate_id}: {self.verdict}. Tried: {self.tried} Happened: {self.happened} "
            f"Uplift {measured} ({self.calibration}; predicted {self.predicted_min:+.0f} % to "
            f"{self.predicted_max:+.0f} %). Next: {self.next}"
        )


class StepFailed(_Content):
    """An agent could not do its step, repairs included, or says that it cannot be done (`gave_up`); the
    session goes on without it."""

    type: Literal["step_failed"] = "step_failed"
    agent: str
    slot: int | None = None
    reason: str
    gave_up: bool = False

    @property
    def text(self) -> str:
        if self.gave_up:
            return f"{self.agent} gave up: {self.reason}"
        return f"{self.agent} gave no usable answer: {self.reason}"


class Stopped(_Content):
    """The conversation ends here: a limit, an interruption, or an endpoint that cannot be used."""

    type: Literal["stopped"] = "stopped"
    agent: str
    reason: str

    @property
    def text(self) -> str:
        return f"Stopped: {self.reason}"


Content = Annotated[
    GenerationTask
    | Selection
    | Hypotheses
    | CandidateProposal
    | EvaluationFailure
    | Finding
    | StepFailed
    | Stopped,
    Field(discriminator="type"),
]
