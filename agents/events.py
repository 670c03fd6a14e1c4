"""The typed events of a run: one JSON object a line in ``events.jsonl``, in the order they happened.

Whatever a line refers to (a candidate's folder, an evaluation) is on disk before the line is.
An unknown field is ignored when reading, so that an older version can show a newer run.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from kernel_scientist.tools.evaluation import Comparison, Evaluation, Interval

from .messages import Content, RubricPoint

__all__ = [
    "BestChanged",
    "CandidateCreated",
    "CandidateId",
    "CitedPassage",
    "ComparisonFinished",
    "ContextCut",
    "ErrorRecorded",
    "EvaluationFinished",
    "EvaluationStarted",
    "Event",
    "GenerationStarted",
    "LimitReached",
    "MessageSent",
    "ModelCall",
    "PassagesRetrieved",
    "PathInRun",
    "RunFinished",
    "RunResumed",
    "RunStarted",
    "SpeakerSelected",
    "StopRequested",
    "ToolCall",
    "Totals",
    "Usage",
    "parse_event",
]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings")


def _in_the_run(path: str) -> str:
    """A record may come from anybody: what it names must not lead to other files of this machine."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or not path.isprintable():
        raise ValueError("the path leads out of the run's folder")
    return path


CandidateId = Annotated[str, Field(pattern=r"^[0-9]{4,9}$")]
PathInRun = Annotated[str, AfterValidator(_in_the_run)]


class _Event(_Value):
    """`seq` counts from 1 within a run; `time` is UTC; `lane` and `generation` are 0 outside the generations.

    Lanes count from 1; conversations of different lanes go on at the same time.
    """

    seq: int
    time: datetime
    lane: int = 0
    generation: int = 0


class Usage(_Value):
    """Tokens of one model call; `estimated` when the endpoint reported none and we counted.

    Of the prompt, `cached_tokens` had been read before; of the answer, `reasoning_tokens` are not text.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Totals(_Value):
    """What a run has used so far. `cost_usd` is ``None`` when a price is unknown."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    evaluations: int = 0
    candidates: int = 0
    accepted: int = 0
    seconds: float = 0.0


class CitedPassage(_Value):
    """A passage of literature as it was shown to an agent, with its citation."""

    id: str
    title: str
    section: str = ""
    page: int | None = None
    source: str = ""
    looked_up: str = ""
    score: float | None = None
    text: str = ""
    document_kind: Literal["literature", "experience"] = "literature"


class RunStarted(_Event):
    kind: Literal["run_started"] = "run_started"
    run_id: str
    problem: str
    kernel: str
    target: str
    device: str = ""
    sandbox: str = ""
    models: dict[str, str]
    generations: int
    experiments: int
    limits: dict[str, float | int | None]
    versions: dict[str, str]
    notes: tuple[str, ...] = ()


class RunResumed(_Event):
    """The run goes on in another process, its `sitting`-th. `interrupted` are the generations begun before.

    `totals` are those of the sittings before; `notes` say what is not as it was.
    """

    kind: Literal["run_resumed"] = "run_resumed"
    run_id: str
    sitting: int
    generations: int
    interrupted: tuple[int, ...] = ()
    limits: dict[str, float | int | None]
    versions: dict[str, str]
    totals: Totals
    notes: tuple[str, ...] = ()


class GenerationStarted(_Event):
    kind: Literal["generation_started"] = "generation_started"
    generations: int
    best_id: str
    best_speedup: float | None = None
    totals: Totals


class SpeakerSelected(_Event):
    kind: Literal["speaker_selected"] = "speaker_selected"
    agent: str
    slot: int | None = None
    attempt: int | None = None


class MessageSent(_Event):
    """An agent spoke: the typed content and the same as text."""

    kind: Literal["message"] = "message"
    agent: str
    content: Content
    text: str


class ModelCall(_Event):
    """One attempt at a model call, failed ones included (`error`). `request` is what was new in it.

    `request` lists the messages sent; those already recorded by an earlier call of the same turn are
    counted in `request_prefix` (the first so many messages of that call) and not repeated. `request_key`
    is a hash of all of them without measured figures, by which a replay knows the call. The model's own
    reasoning, where the service gives it, is the response's `thought`.
    """

    kind: Literal["model_call"] = "model_call"
    agent: str
    purpose: str
    model: str
    attempt: int = 1
    usage: Usage
    cost_usd: float | None = None
    seconds: float
    request_key: str = ""
    request_prefix: int = 0
    request: tuple[dict[str, Any], ...] = ()
    response: dict[str, Any] | None = None
    error: str | None = None


class ContextCut(_Event):
    """A prompt was larger than the model's `window` of tokens, and so `cut` was left out of it."""

    kind: Literal["context_cut"] = "context_cut"
    agent: str
    window: int
    cut: tuple[str, ...]


class ToolCall(_Event):
    kind: Literal["tool_call"] = "tool_call"
    agent: str
    tool: str
    arguments: dict[str, Any]
    result: str
    is_error: bool = False
    called_by: Literal["model", "agent"] = "model"
    seconds: float


class PassagesRetrieved(_Event):
    kind: Literal["passages_retrieved"] = "passages_retrieved"
    agent: str
    query: str
    passages: tuple[CitedPassage, ...]


class CandidateCreated(_Event):
    """`path` is relative to the run folder; `diff` is a unified diff against the parent; `rubric` is the
    Coder's report point by point."""

    kind: Literal["candidate_created"] = "candidate_created"
    candidate_id: CandidateId
    parent_id: str | None = None
    reference_id: str | None = None
    slot: int | None = Field(default=None, ge=0)
    attempt: int = 1
    path: PathInRun
    key: str
    diff: str = ""
    report: str = ""
    rubric: tuple[RubricPoint, ...] = ()


class EvaluationStarted(_Event):
    kind: Literal["evaluation_started"] = "evaluation_started"
    candidate_id: str
    tier: str


class EvaluationFinished(_Event):
    """`reused_from` is the candidate whose evaluation this is: the same program, which was not run again."""

    kind: Literal["evaluation_finished"] = "evaluation_finished"
    candidate_id: str
    evaluation: Evaluation
    seconds: float
    reused_from: str | None = None


class ComparisonFinished(_Event):
    """Fresh measurements of candidate B against A, made before a claim; `improved` is the claim."""

    kind: Literal["comparison_finished"] = "comparison_finished"
    a_id: str
    b_id: str
    comparison: Comparison
    improved: bool
    seconds: float


class BestChanged(_Event):
    """A candidate now leads; its speedup is over the starting kernel, at `tier`."""

    kind: Literal["best_changed"] = "best_changed"
    candidate_id: str
    previous_id: str
    speedup: Interval
    tier: str


class StopRequested(_Event):
    """Somebody asked the session to stop; an evaluation in flight has `grace_s` seconds to end."""

    kind: Literal["stop_requested"] = "stop_requested"
    reason: str
    grace_s: float


class LimitReached(_Event):
    kind: Literal["limit_reached"] = "limit_reached"
    limit: str
    used: float
    maximum: float
    sentence: str


class ErrorRecorded(_Event):
    """Something went wrong; with `recovered` the session went on."""

    kind: Literal["error"] = "error"
    where: str
    message: str
    recovered: bool


class RunFinished(_Event):
    kind: Literal["run_finished"] = "run_finished"
    status: str
    stop_reason: str
    exit_code: int
    best_id: str | None = None
    best_path: str | None = None
    speedup: Interval | None = None
    totals: Totals


Event = Annotated[
    RunStarted
    | RunResumed
    | GenerationStarted
    | SpeakerSelected
    | MessageSent
    | ModelCall
    | ContextCut
    | ToolCall
    | PassagesRetrieved
    | CandidateCreated
    | EvaluationStarted
    | EvaluationFinished
    | ComparisonFinished
    | BestChanged
    | StopRequested
    | LimitReached
    | ErrorRecorded
    | RunFinished,
    Field(discriminator="kind"),
]

_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(line: str | bytes) -> Event:
    """Read one line of ``events.jsonl``. Raises `ValueError` on a line that is not an event."""
    return _adapter.validate_json(line)
