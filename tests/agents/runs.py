"""Runs for the tests of resuming: a scripted model that pays for its words, and copies of a run cut short."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, RequestUsage

from kernel_scientist.agents import Config, Run
from kernel_scientist.agents.models.local import LocalModel
from kernel_scientist.agents.models.scripted import request_of
from kernel_scientist.agents.requests import (
    BenchmarkRequest,
    CodeRequest,
    Request,
    ResearchRequest,
    SelectRequest,
)

PRICED = Config.model_validate({"models": {"prices": {"paid": {"input": 1.0, "output": 2.0}}}})
TOKENS = RequestUsage(prompt_tokens=1000, completion_tokens=100)


class PaidModel(LocalModel):
    """Answers well, and each time otherwise than before; `calls` are the requests it was asked."""

    name = "paid"
    free = False

    def __init__(
        self, before: Callable[[Request], object] = lambda request: None, latency_s: float = 0.0
    ) -> None:
        self.calls: list[str] = []
        self._before = before
        self._latency_s = latency_s

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        result = await super().create(messages, **options)
        return result.model_copy(update={"usage": TOKENS})

    def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
        request = request_of(messages)
        assert request is not None
        self._before(request)
        self.calls.append(request.request)
        return reply_to(request, answered=len(messages) > 2, tools=tools)


def reply_to(request: Request, *, answered: bool, tools: Sequence[str]) -> str | list[FunctionCall]:
    """A good reply; `answered` when the model has called its tool already."""
    match request:
        case SelectRequest():
            return json.dumps({"base_id": request.population[0].id, "reasons": "the fastest"})
        case ResearchRequest():
            if not answered and tools:
                return [FunctionCall("1", '{"query": "tiles"}', "search_literature")]
            experiments = [experiment(request, n) for n in range(request.experiments)]
            return json.dumps({"experiments": experiments, "fewer": "no avenues"})
        case CodeRequest():
            words = request.experiment.description
            number = "".join(filter(str.isdigit, words))
            code = f"{request.base.source}\n__device__ int idea_{number}() {{ return {number}; }}\n"
            return f"```hip\n{code}```\n" + json.dumps({"report": words})
        case BenchmarkRequest():
            if not answered:
                return [
                    FunctionCall("1", json.dumps({"candidate_id": request.candidate_id}), "evaluate_kernel")
                ]
            return json.dumps({"tried": request.candidate_id, "happened": "it ran", "next": "more"})


def experiment(request: ResearchRequest, number: int) -> dict[str, object]:
    return {
        "description": f"generation {request.generation}, idea {number}",
        "rubric": ["add a line"],
        "uplift_min": number,
        "uplift_max": 10 + number,
        "innovation": 50 + number,
        "citations": ["tiles#1"],
    }


def cut_copy(run: Run, folder: Path, lines: int, torn: bytes = b"") -> Run:
    """A copy of `run` as a kill would have left it after so many lines; files of later steps may be there."""
    copy = folder / run.id
    shutil.copytree(run.path, copy)
    record = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "events.jsonl").write_bytes(b"".join(record[:lines]) + torn)
    info = json.loads((copy / "run.json").read_text())
    info.update(status="running", stop_reason="", exit_code=None, finished=None, best=None)
    (copy / "run.json").write_text(json.dumps(info))
    shutil.rmtree(copy / "best", ignore_errors=True)
    (copy / "running.lock").touch()
    if not lines:
        shutil.rmtree(copy / "candidates")
        (copy / "candidates").mkdir()
    return Run(copy)
