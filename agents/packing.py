"""Fitting a request into what a model can read, and saying what was left out.

Tokens are estimated from characters, on the safe side for code (three characters a token).
"""

from __future__ import annotations

from .requests import CodeRequest, Request, ResearchRequest, SelectRequest, render_request

__all__ = ["CHARACTERS_PER_TOKEN", "pack"]

CHARACTERS_PER_TOKEN = 3
# Room kept for the system prompt, tool results, repairs and the answer itself.
_SHARE = 0.6


def pack(request: Request, context_tokens: int) -> tuple[Request, str]:
    """`request` cut to the window, and a sentence for the prompt on what was cut (or an empty one)."""
    limit = int(context_tokens * CHARACTERS_PER_TOKEN * _SHARE)
    cut: list[str] = []
    for name, smaller in _steps(request):
        if len(render_request(request)) <= limit:
            break
        request = request.model_copy(update=smaller)
        cut.append(name)
    return request, f" Left out for want of room: {', '.join(cut)}." if cut else ""


def _steps(request: Request) -> list[tuple[str, dict[str, object]]]:
    """What may go, the least missed first; each step is (name, the fields it changes)."""
    match request:
        case SelectRequest():
            rows = request.population
            return [("digest", {"digest": ()}), ("all but 12 of the population", {"population": rows[:12]})]
        case ResearchRequest():
            steps: list[tuple[str, dict[str, object]]] = [
                ("all but 3 passages", {"passages": request.passages[:3]}),
                ("the Reference", {"reference": None}),
                ("passages", {"passages": ()}),
                ("digest", {"digest": ()}),
            ]
            if request.tuning is not None:
                fewer = request.tuning.model_copy(update={"tried": request.tuning.tried[:40]})
                steps.insert(1, ("all but 40 configurations", {"tuning": fewer}))
            return steps
        case CodeRequest():
            return [
                ("all but 2 passages", {"passages": request.passages[:2]}),
                ("the Reference", {"reference": None}),
                ("digest", {"digest": ()}),
                ("all but the last failure", {"failures": request.failures[-1:]}),
                ("passages", {"passages": ()}),
            ]
        case _:
            return []
