"""The model ``replay:RUN``: it plays back the replies of a recorded run, against the real judge.

A call is known by its lane, generation, agent and turn. Where what is asked now (without measured figures,
which always differ) is not what was asked then, the reply is given all the same and the difference said.
A call that failed for good in the recording fails again, and one that is not in it fails; when nothing is
left of the recording, the session ends.
"""

# ruff: noqa: ARG002 - arguments of the models' interface
from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage
from pydantic import ValidationError

from kernel_scientist.sandbox.errors import UsageError

from .. import events as ev
from ..config import ModelsConfig
from ..run import Run
from .ledger import request_key
from .local import LocalModel
from .protocol import DetailedUsage
from .registry import CallFault, CallKey, OpenedModel

__all__ = ["ReplayModel", "open_replay"]

_Place = tuple[int, int, str]


class _NoReply(Exception):  # noqa: N818 - named by what happened
    """There is no reply: the recording's call `failed` too, or there was no further call."""

    def __init__(self, sentence: str, *, failed: bool) -> None:
        super().__init__(sentence)
        self.failed = failed


@dataclass(frozen=True, slots=True)
class _Recorded:
    """How one call ended: with a result, or for good with an error."""

    seq: int
    key: str
    result: CreateResult | None
    error: str = ""


def open_replay(name: str, config: ModelsConfig, environ: Mapping[str, str]) -> OpenedModel:  # noqa: ARG001
    """The replies of the run `name`: its folder, or its events.jsonl. Raises `UsageError`."""
    model = ReplayModel(Path(name))

    def explain(error: Exception) -> CallFault:
        if isinstance(error, _NoReply):
            return CallFault(str(error), over=not error.failed)
        return CallFault(f"the recording cannot be played: {type(error).__name__}: {error}")

    return OpenedModel(f"replay:{name}", model, explain, free=True)


@final
class ReplayModel(LocalModel):
    """Recorded replies, each given once."""

    name = "replay"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left: dict[_Place, deque[_Recorded]] = defaultdict(deque)
        calls = _calls(path)
        if not calls:
            raise UsageError(f"{path}: there is no reply of a model in this recording; give another run.")
        for place, one in calls:
            self._left[place].append(one)

    def answer(self, messages: Sequence[LLMMessage], tools: Sequence[str]) -> str | list[FunctionCall]:
        raise AssertionError("a replay is asked by its key")

    async def answer_to(self, key: CallKey, messages: Sequence[LLMMessage]) -> tuple[CreateResult, str]:
        """The recorded reply to this call, and a remark where it was to another request."""
        place: _Place = (key.lane, key.generation, key.agent)
        left = self._left[place]
        where = f"generation {key.generation}" + (f" of lane {key.lane}" if key.lane else "")
        if not left:
            call = f"call {key.turn + 1} of the {key.agent} in {where}"
            if self._goes_on_from(key):
                raise _NoReply(
                    f"the run diverges from the recording {self._path}, which has no reply for {call}",
                    failed=True,
                )
            raise _NoReply(f"the recording {self._path} is used up: it has no reply for {call}", failed=False)
        asked = request_key(messages)
        # A resumed run may hold a call twice: the same request is preferred, what lies before it passed over.
        ahead = next((i for i, one in enumerate(left) if one.key == asked and one.result is not None), 0)
        for _ in range(ahead):
            left.popleft()
        one = left.popleft()
        if one.result is None:
            raise _NoReply(f"as in the recording, the call failed: {one.error}", failed=True)
        if one.key in ("", asked):
            return one.result, ""
        return one.result, (
            f"the run diverges from the recording: call {key.turn + 1} of the {key.agent} in {where} is not "
            f"the one recorded as [#{one.seq}] of {self._path}; its reply is given all the same"
        )

    def _goes_on_from(self, key: CallKey) -> bool:
        """Whether something is recorded for this generation or a later one that was not asked for yet."""
        return any(
            left and lane == key.lane and generation >= key.generation
            for (lane, generation, _), left in self._left.items()
        )


def _calls(path: Path) -> list[tuple[_Place, _Recorded]]:
    """How each recorded call ended, in order. Tries that were followed by another are not ends."""
    folder = path.parent if path.name == "events.jsonl" else path
    if not (folder / "events.jsonl").is_file():
        raise UsageError(f"{path}: is not a recorded run; give a run's folder, or its events.jsonl.")
    ended: list[tuple[_Place, _Recorded]] = []
    failing: dict[_Place, int] = {}
    for event in Run(folder).events():
        if not isinstance(event, ev.ModelCall):
            continue
        place: _Place = (event.lane, event.generation, event.agent)
        index = failing.pop(place, None)
        if index is None or event.attempt == 1:
            index = len(ended)
        error = event.error or ""
        one = (place, _Recorded(event.seq, event.request_key, _result(event), error))
        ended[index : index + 1] = [one]
        if event.error is not None:
            failing[place] = index
    return ended


def _result(event: ev.ModelCall) -> CreateResult | None:
    if event.response is None:
        return None
    usage = DetailedUsage(
        event.usage.prompt_tokens,
        event.usage.completion_tokens,
        event.usage.cached_tokens,
        event.usage.reasoning_tokens,
    )
    try:
        return CreateResult.model_validate({**event.response, "usage": usage, "cached": True})
    except ValidationError:
        raise UsageError(
            f"The event with seq {event.seq} of the recording holds no reply of a model; give another run."
        ) from None
