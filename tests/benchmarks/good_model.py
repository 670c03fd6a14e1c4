"""Replies of a good model, and a library without a passage: what the benchmarks of sessions share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall

from kernel_scientist.agents.requests import (
    BenchmarkRequest,
    CodeRequest,
    Request,
    ResearchRequest,
    SelectRequest,
)


class NoLiterature:
    """A library without a passage."""

    def search(self, query: str, *, limit: int = 8) -> list[Any]:
        del query, limit
        return []


def reply(request: Request, messages: Sequence[object], tools: Sequence[str]) -> str | list[FunctionCall]:
    """What a good model would answer; every candidate is another program."""
    match request:
        case SelectRequest():
            return json.dumps({"base_id": request.population[0].id, "reasons": "the fastest"})
        case ResearchRequest():
            experiments = [_experiment(request, n) for n in range(request.experiments)]
            return json.dumps({"experiments": experiments, "fewer": "ideas need no avenue here"})
        case CodeRequest():
            number = int(request.experiment.description.split()[-1])
            code = f"{request.base.source}\n__device__ int idea_{number}() {{ return {number}; }}\n"
            return f"```hip\n{code}```\n" + json.dumps({"report": "done"})
        case BenchmarkRequest():
            if len(messages) <= 2 and tools:
                return [
                    FunctionCall("1", json.dumps({"candidate_id": request.candidate_id}), "evaluate_kernel")
                ]
            return json.dumps({"tried": "an idea", "happened": "it ran", "next": "more"})


def _experiment(request: ResearchRequest, number: int) -> dict[str, object]:
    return {
        "description": f"idea {100 * request.generation + number}",
        "rubric": [f"add function {100 * request.generation + number}"],
        "uplift_min": 1,
        "uplift_max": 2,
        "innovation": 50,
    }
