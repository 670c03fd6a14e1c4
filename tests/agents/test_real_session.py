"""One whole session with nothing scripted: CPU device, caged workers, bundled library, offline model."""

from __future__ import annotations

import json
from pathlib import Path

from kernel_scientist.agents import Config, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.tools.settings import JudgeSettings, TierSettings

QUICK = JudgeSettings(
    screen=TierSettings(3, 3, 0.3, 1), confirm=TierSettings(6, 6, 1.0, 4), batch_s=0.005, held_out_shapes=1
)


def test_a_real_session_on_the_cpu_device_makes_matmul_several_times_faster(tmp_path: Path) -> None:
    events: list[ev.Event] = []
    with KnowledgeBase.open(tmp_path / "knowledge", embedder=FakeEmbedder()) as knowledge:
        result = Session(
            "matmul", target="cpu", generations=1, experiments=1, seed=1, judge=QUICK, knowledge=knowledge,
            runs_dir=tmp_path / "runs", config=Config(), observer=events.append,
        ).run()  # fmt: skip

    assert (result.status, result.exit_code) == ("improved", 0)
    assert result.best is not None and result.best.speedup.low > 2
    for candidate in result.run.candidates():
        assert candidate.evaluation is not None and candidate.evaluation.accepted
        assert candidate.evaluation.resources, (
            "what the MI300 compiler makes of it belongs to every candidate"
        )
    passages = [p for event in events if isinstance(event, ev.PassagesRetrieved) for p in event.passages]
    assert passages and all(one.source and one.title for one in passages)
    stored = json.loads((result.run.path / "best" / "comparison.json").read_text())
    assert stored["speedup"]["value"] == result.best.speedup.value
