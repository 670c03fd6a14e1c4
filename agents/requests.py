"""What each agent is asked: one fenced JSON block of a documented type in every prompt.

    ```json request
    {"request": "select", ...}
    ```

A language model and the built-in offline model read the same block. Code, literature and the judge's
output stand in it as JSON strings: data, never instructions. A backtick is written ``\\u0060`` there, so
nothing quoted can close the fence.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from .messages import Experiment, RubricPoint

__all__ = [
    "AttemptView",
    "BenchmarkRequest",
    "CodeRequest",
    "DigestLine",
    "KernelView",
    "PassageView",
    "PopulationRow",
    "ProblemView",
    "RefusedView",
    "Request",
    "ResearchRequest",
    "ResultView",
    "SelectRequest",
    "ShapeView",
    "StrategyView",
    "TriedTuning",
    "Tuning",
    "UnderWay",
    "find_request",
    "render_request",
]


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="strings")


class ProblemView(_View):
    """What is to be computed; `buffers` and `scalars` are the names a launch may pass."""

    name: str
    title: str
    description: str
    buffers: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    target: str = ""
    device: str = ""


class ShapeView(_View):
    """Measured time on one shape, its ratio to the starting kernel's, and the speed-of-light time."""

    shape: dict[str, int]
    time_us: float
    speedup: float | None = None
    bound_us: float | None = None
    bound_by: str | None = None


class KernelView(_View):
    """A kernel with its measurements; `speedup` is over the starting kernel."""

    id: str
    source: str
    verdict: str | None = None
    speedup: float | None = None
    time_us: float | None = None
    shapes: tuple[ShapeView, ...] = ()
    resources: tuple[dict[str, Any], ...] = ()


class PopulationRow(_View):
    """One member of the population. `constants` are the tunable ones."""

    id: str
    parent_id: str | None = None
    generation: int = 0
    verdict: str | None = None
    speedup: float | None = None
    time_us: float | None = None
    shape_times_us: tuple[float, ...] = ()
    constants: dict[str, int | float | str] = {}
    summary: str = ""


class DigestLine(_View):
    """One thing learnt; candidate and event (its evaluation in the record) are the evidence."""

    candidate_id: str
    event: int | None = None
    strategy: str
    tried: str
    result: str
    lesson: str = ""


class StrategyView(_View):
    """What came of one strategy so far; uplifts are percent over the Base, `best_id` is the evidence.

    `coverage` is the share of predicted ranges that held, `bias` the median of measured less predicted.
    """

    strategy: str
    tried: int
    accepted: int
    median_uplift: float | None = None
    best_uplift: float | None = None
    best_id: str | None = None
    coverage: float | None = None
    bias: float | None = None


class RefusedView(_View):
    """An experiment of the last answer that repeats one already tried; `result` is what came of that."""

    description: str
    candidate_id: str | None = None
    result: str = ""
    similarity: float


class PassageView(_View):
    """A passage of literature, or of what an earlier run found out; cite it by `id`."""

    id: str
    kind: Literal["literature", "experience"] = "literature"
    citation: str
    text: str


class TriedTuning(_View):
    """A configuration already judged: `values` in the order of the tuning's names."""

    candidate_id: str
    values: tuple[int | float | str, ...]
    verdict: str
    speedup: float | None = None


class Tuning(_View):
    """The Base's ``[tune]`` table: values worth trying, rules among them, what was tried."""

    names: tuple[str, ...]
    values: dict[str, tuple[int | float | str, ...]]
    where: tuple[str, ...] = ()
    constants: dict[str, int | float | str] = {}
    tried: tuple[TriedTuning, ...] = ()


class ResultView(_View):
    """What the judge said of a candidate; `uplift_percent` is over the Base."""

    candidate_id: str
    verdict: str
    accepted: bool
    speedup: float | None = None
    uplift_percent: float | None = None
    time_us: float | None = None
    report: str = ""


class AttemptView(_View):
    """An earlier attempt at the same experiment that failed."""

    candidate_id: str
    verdict: str
    evidence: str
    source: str = ""


class SelectRequest(_View):
    """To the Selector: pick a Base and a contrasting Reference from `population`."""

    request: Literal["select"] = "select"
    generation: int
    problem: ProblemView
    population: tuple[PopulationRow, ...]
    population_size: int
    digest: tuple[DigestLine, ...] = ()


class UnderWay(_View):
    """An experiment on Base `base_id` that another lane is trying at this moment."""

    base_id: str
    description: str
    rubric: tuple[str, ...] = ()


class ResearchRequest(_View):
    """To the Researcher: `avenues` directions, then `experiments` concrete ones on `base`.

    It is the request of one of `lanes` conversations that go on side by side; what the others have decided
    to try is `under_way`.
    `goal` is what the search policy asks for, `focus` where the Base is furthest from the speed of light,
    `strategies` what came of each so far, `strategy_names` the names an experiment may be filed under.
    `refused` are experiments of the last answer that repeat what was tried: others are wanted.
    """

    request: Literal["research"] = "research"
    generation: int
    avenues: int
    experiments: int
    searches: int
    problem: ProblemView
    base: KernelView
    reference: KernelView | None = None
    reasons: str = ""
    goal: str = ""
    focus: str = ""
    tuning: Tuning | None = None
    digest: tuple[DigestLine, ...] = ()
    strategies: tuple[StrategyView, ...] = ()
    strategy_names: tuple[str, ...] = ()
    calibration: str = ""
    refused: tuple[RefusedView, ...] = ()
    passages: tuple[PassageView, ...] = ()
    lane: int = 1
    lanes: int = 1
    under_way: tuple[UnderWay, ...] = ()


class CodeRequest(_View):
    """To the Coder: implement `experiment` on `base`; `failures` are attempts to repair."""

    request: Literal["code"] = "code"
    generation: int
    problem: ProblemView
    base: KernelView
    reference: KernelView | None = None
    experiment: Experiment
    failures: tuple[AttemptView, ...] = ()
    digest: tuple[DigestLine, ...] = ()
    passages: tuple[PassageView, ...] = ()


class BenchmarkRequest(_View):
    """To the Benchmarker: have `candidate_id` evaluated and write the finding.

    `rubric` is what the Coder says of each point of the experiment's.
    `result` is there when the evaluation was made without a tool call of the model's.
    """

    request: Literal["benchmark"] = "benchmark"
    generation: int
    candidate_id: str
    base_id: str
    base_speedup: float | None = None
    experiment: Experiment
    report: str = ""
    rubric: tuple[RubricPoint, ...] = ()
    result: ResultView | None = None


Request = Annotated[
    SelectRequest | ResearchRequest | CodeRequest | BenchmarkRequest, Field(discriminator="request")
]

_adapter: TypeAdapter[Request] = TypeAdapter(Request)
_BLOCK = re.compile(r"^```json request\n(.*?)\n```$", re.DOTALL | re.MULTILINE)


def render_request(request: Request) -> str:
    """The fenced block for `request`."""
    data = request.model_dump(mode="json", exclude_none=True)
    return f"```json request\n{json.dumps(data, indent=1).replace('`', chr(92) + 'u0060')}\n```"


def find_request(text: str) -> Request | None:
    """The request in a prompt; ``None`` unless there is exactly one block and it is a request."""
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1:
        return None
    try:
        return _adapter.validate_json(blocks[0])
    except ValidationError:
        return None
