"""The built-in model ``offline``: rules, not a language model, and it says so.

It reads the fenced request of a prompt and nothing else, and answers in the same formats as any model. It
can move the constants that a kernel's ``[tune]`` table lists; it cannot write code. What it predicts comes
from the timings so far (`tuning.py`), what it cites from passages that speak of the tunables it moves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, assert_never, cast, final

from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResultMessage, LLMMessage

from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.kernel import Kernel

from ..config import ModelsConfig
from ..requests import (
    BenchmarkRequest,
    CodeRequest,
    PopulationRow,
    Request,
    ResearchRequest,
    ResultView,
    SelectRequest,
    Tuning,
)
from .glossary import Topic, topics_of
from .local import LocalModel
from .registry import CallFault, OpenedModel
from .scripted import request_of
from .tuning import Move, Proposal, TuningSearch, describe_moves

__all__ = ["OfflineModel", "open_offline"]

_SET = re.compile(r"^Set (\w+) = (.+?) \(was ")


def open_offline(name: str, _config: ModelsConfig, _environ: Mapping[str, str]) -> OpenedModel:
    """The offline model; it needs neither endpoint nor key."""

    def explain(error: Exception) -> CallFault:
        return CallFault(f"the offline model failed: {type(error).__name__}: {error}")

    return OpenedModel(name, OfflineModel(), explain, free=True)


@final
class OfflineModel(LocalModel):
    """Answers the four agents' requests by rule."""

    name = "offline (rule-based, not a language model)"

    def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
        request = request_of(messages)
        if request is None:
            return "The offline model answers only requests in a fenced JSON block, and this prompt has none."
        results = _tool_results(messages)
        return self._answer(request, results, tools)

    def _answer(
        self, request: Request, results: list[dict[str, Any]], tools: Sequence[str]
    ) -> str | list[FunctionCall]:
        match request:
            case SelectRequest():
                return _select(request)
            case ResearchRequest():
                return _research(request, results, tools)
            case CodeRequest():
                return _code(request)
            case BenchmarkRequest():
                return _benchmark(request, results, tools)
            case _:
                assert_never(request)


def _tool_results(messages: Sequence[LLMMessage]) -> list[dict[str, Any]]:
    """Every tool result so far that is a JSON object."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, FunctionExecutionResultMessage):
            for result in message.content:
                try:
                    value = json.loads(result.content)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    found.append(cast("dict[str, Any]", value))
    return found


def _json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```"


def _calls(tool: str, arguments: Sequence[dict[str, str]]) -> list[FunctionCall]:
    return [
        FunctionCall(id=f"{tool}-{number}", name=tool, arguments=json.dumps(one))
        for number, one in enumerate(arguments, start=1)
    ]


def _select(request: SelectRequest) -> str:
    """The fastest as Base; as Reference the accepted kernel whose tunables differ most from it."""
    passed = [row for row in request.population if row.verdict == "accepted"]
    # A kernel without tunables (a portfolio, say) leaves this model nothing to do.
    passed = [row for row in passed if row.constants] or passed
    ranked = sorted(passed, key=lambda row: -(row.speedup or 0.0))
    base, others = ranked[0], ranked[1:]
    reference = max(others, key=lambda row: (_unlike(row, base), row.speedup or 0.0), default=None)
    reasons = f"By rule: {base.id} is the fastest accepted kernel ({_times(base.speedup)})."
    if reference is not None:
        count = _unlike(reference, base)
        reasons += f" {reference.id} ({_times(reference.speedup)}) differs from it in {count} tunables."
    return _json(
        {"base_id": base.id, "reference_id": reference.id if reference else None, "reasons": reasons}
    )


def _unlike(a: PopulationRow, b: PopulationRow) -> int:
    return sum(a.constants.get(name) != b.constants.get(name) for name in {*a.constants, *b.constants})


def _times(speedup: float | None) -> str:
    return "not timed" if speedup is None else f"{speedup:.2f}x the starting kernel"


def _research(
    request: ResearchRequest, results: list[dict[str, Any]], tools: Sequence[str]
) -> str | list[FunctionCall]:
    tuning = request.tuning
    if tuning is None:
        return _nothing(
            "the kernel has no [tune] table, and the offline model can only move what such a table lists; "
            "add one to the plan, or use a language model"
        )
    if all(len(values) < 2 for values in tuning.values.values()):
        return _nothing("the kernel's [tune] table lists no second value for any constant")
    search = TuningSearch(tuning)
    if search.exhausted:
        return _nothing("every allowed configuration of the kernel's [tune] table has been tried")
    topics = topics_of(tuning.names)
    if not results and request.searches and "search_literature" in tools:
        queries = [topic.query for topic in topics[: request.searches]]
        if queries:
            return _calls("search_literature", [{"query": query} for query in queries])
    passages = {one.id: one.text for one in request.passages}
    for result in results:
        passages |= {str(one["id"]): str(one["text"]) for one in result.get("passages", [])}
    proposals = _own_proposals(search, request)
    if not proposals:
        return _nothing("what is left of the kernel's [tune] table is being tried by other lanes")
    avenues = _avenues(tuning, proposals, topics)[: request.avenues]
    reply: dict[str, object] = {
        "avenues": avenues,
        "experiments": [_experiment(one, passages) for one in proposals],
    }
    if len(avenues) < request.avenues or len(proposals) < request.experiments:
        reply["fewer"] = "by rule, no more than the kernel's [tune] table offers"
    return _json(reply)


def _own_proposals(search: TuningSearch, request: ResearchRequest) -> list[Proposal]:
    """This lane's share: of n lanes that ask at the same time, knowing the same, each takes every n-th."""
    taken = [_moved(_moves(one.rubric)) for one in request.under_way if one.base_id == request.base.id]
    wanted = request.experiments * request.lanes + len(taken)
    free = [one for one in search.proposals(wanted) if _moved(one.moves) not in taken]
    return (free[request.lane - 1 :: request.lanes] or free)[: request.experiments]


def _moved(moves: Sequence[Move]) -> dict[str, int | float | str]:
    return {move.name: move.new for move in moves}


def _nothing(reason: str) -> str:
    return _json({"nothing_to_try": f"There is nothing to tune: {reason}."})


def _avenues(tuning: Tuning, proposals: Sequence[Proposal], topics: Sequence[Topic]) -> list[dict[str, str]]:
    """Joint moves first, then each topic's tunables."""
    avenues = [
        {"title": f"Move {len(one.moves)} tunables at once", "rationale": f"By rule: {one.why}."}
        for one in proposals
        if len(one.moves) > 1
    ]
    for topic in topics:
        names = [name for name in tuning.names if topic.matches(name)]
        ranges = "; ".join(f"{name} among {', '.join(map(str, tuning.values[name]))}" for name in names)
        avenues.append(
            {"title": f"{topic.strategy}: {', '.join(names)}", "rationale": f"{topic.why} ({ranges})."}
        )
    return avenues


def _experiment(proposal: Proposal, passages: Mapping[str, str]) -> dict[str, object]:
    topics = topics_of([move.name for move in proposal.moves])
    cited = [name for topic in topics if (name := _best_passage(topic, passages)) is not None]
    forecast = proposal.forecast
    return {
        "description": f"{describe_moves(proposal.moves)}: {proposal.why}.",
        "rubric": [
            f"Set {move.name} = {json.dumps(move.new)} (was {json.dumps(move.old)})."
            for move in proposal.moves
        ],
        "strategy": topics[0].strategy if len(topics) == 1 else "joint tuning",
        "uplift_min": round(forecast.low, 1),
        "uplift_max": round(forecast.high, 1),
        "innovation": round(100 * forecast.distance),
        "citations": list(dict.fromkeys(cited)),
    }


def _best_passage(topic: Topic, passages: Mapping[str, str]) -> str | None:
    """The passage that mentions the topic most; one mention may be by the way and is not enough."""
    mentions = {name: topic.mentions_in(text) for name, text in passages.items()}
    best = max(mentions, key=lambda name: mentions[name], default=None)
    return best if best is not None and mentions[best] >= 2 else None


def _code(request: CodeRequest) -> str:
    """The experiment's constants as one SEARCH/REPLACE block; a failed attempt cannot be mended by rule."""
    if request.failures:
        return _json({"give_up": "The offline model sets constants only; it knows no other way to do this."})
    moves = _moves(request.experiment.rubric)
    if not moves:
        return _json({"give_up": "The offline model sets constants only, and the rubric names none to set."})
    try:
        changed = Kernel.parse(request.base.source).with_constants({move.name: move.new for move in moves})
    except PlanError as error:
        return _json({"give_up": f"The offline model cannot make this change: {error}."})
    report = f"By rule, constants only: {describe_moves(moves)}. The code itself is unchanged."
    rubric = [
        {"item": number, "status": "done"} for number, _ in enumerate(request.experiment.rubric, start=1)
    ]
    return f"{_json({'report': report, 'rubric': rubric})}\n\n{_edit(request.base.source, changed.source)}"


def _moves(rubric: Sequence[str]) -> list[Move]:
    moves: list[Move] = []
    for line in rubric:
        match = _SET.match(line)
        if match:
            old = line[match.end() :].rsplit(")", 1)[0]
            moves.append(Move(match[1], json.loads(old), json.loads(match[2])))
    return moves


def _edit(old: str, new: str) -> str:
    """One block that turns `old` into `new`: the changed lines and as many round them as make them unique."""
    before, after = old.replace("\r\n", "\n").splitlines(), new.replace("\r\n", "\n").splitlines()
    changed = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    first, last = min(changed), max(changed) + 1
    text = "\n".join(before) + "\n"
    while text.count("\n".join(before[first:last]) + "\n") > 1:
        first, last = max(0, first - 1), min(len(before), last + 1)
    search, replace = "\n".join(before[first:last]), "\n".join(after[first:last])
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE"


def _benchmark(
    request: BenchmarkRequest, results: list[dict[str, Any]], tools: Sequence[str]
) -> str | list[FunctionCall]:
    result = request.result
    for value in results:
        if value.get("candidate_id") == request.candidate_id:
            result = ResultView.model_validate(value)
    if result is None:
        if "evaluate_kernel" in tools:
            return _calls("evaluate_kernel", [{"candidate_id": request.candidate_id}])
        return "There is no evaluation to write about."
    experiment = request.experiment
    low, high = experiment.uplift_min, experiment.uplift_max
    if result.uplift_percent is None:
        happened = f"It was {result.verdict}."
        following = "Keep away from these values."
    else:
        gained = result.uplift_percent
        side = "below" if gained < low else "above" if gained > high else "within"
        predicted = f"{side} the predicted {low:+.1f} % to {high:+.1f} %"
        happened = f"{gained:+.1f} % over Base {request.base_id}, {predicted}."
        following = "Build on it." if gained > 0 else "Try other values; this one is no gain."
    return _json({"tried": experiment.description, "happened": happened, "next": following})
