"""A candidate is compiled while the next agent's model still thinks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import CreateResult, LLMMessage

from kernel_scientist.agents import Config, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.models.offline import OfflineModel
from kernel_scientist.sandbox.compilation import CodeObject
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets.cpu import CpuTarget

from .conftest import Shelf

THINKING_S = 60.0
BUILDS = 2  # of transpose: one for this device, one for gfx942


class Watched(CpuTarget):
    """The real target; it keeps of every build the source, and whether it was there already."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[tuple[str, bool]] = []

    def compile(self, request: Any) -> Any:
        return self._noted(request.source, super().compile(request))

    def report(self, request: Any) -> Any:
        return self._noted(request.source, super().report(request))

    def _noted(self, source: str, result: Any) -> Any:
        assert isinstance(result, CodeObject), result
        self.built.append((source, result.cached))
        return result


class SlowModel(OfflineModel):
    """Thinks until the candidate it is to have judged has been compiled: for ever, if nobody does that."""

    def __init__(self, target: Watched, runs_dir: Path, events: list[ev.Event]) -> None:
        super().__init__()
        self._target, self._runs_dir, self._events = target, runs_dir, events
        self.calls = 0

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        source = self._newest()
        async with asyncio.timeout(THINKING_S):
            while self._builds(source) < BUILDS:
                await asyncio.sleep(0.01)
        self.calls += 1
        return await super().create(messages, **options)

    def _newest(self) -> str:
        run = next(event.run_id for event in self._events if isinstance(event, ev.RunStarted))
        made = [event for event in self._events if isinstance(event, ev.CandidateCreated)]
        return (self._runs_dir / run / made[-1].path).read_text()

    def _builds(self, source: str) -> int:
        return sum(built == source for built, _ in self._target.built)


@pytest.mark.slow
def test_a_candidate_is_compiled_while_a_slow_model_thinks(tmp_path: Path) -> None:
    target, events = Watched(), list[ev.Event]()
    slow = SlowModel(target, tmp_path, events)
    quick = TierSettings(3, 3, 0.5, 3)
    session = Session(
        "transpose",
        target=target,
        knowledge=Shelf(),
        runs_dir=tmp_path,
        generations=1,
        experiments=1,
        models={"benchmarker": slow},
        judge=JudgeSettings(screen=quick, confirm=quick, batch_s=0.004, max_runs=32),
        config=Config(),
        observer=events.append,
    )
    result = session.run()

    assert slow.calls, "the Benchmarker's model was asked"
    candidate = result.run.candidates()[1]
    builds = [cached for source, cached in target.built if source == candidate.source]
    assert builds[:BUILDS] == [False] * BUILDS
    assert len(builds) > BUILDS and all(builds[BUILDS:]), "the evaluation found them"
