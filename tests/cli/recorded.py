"""A small recorded run, written by the product's own recorder, with hostile text in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import (
    Avenue,
    CandidateProposal,
    Choice,
    EvaluationFailure,
    Experiment,
    Finding,
    Hypotheses,
    RubricPoint,
    Selection,
)
from kernel_scientist.agents.recorder import Recorder, unified_diff
from kernel_scientist.agents.run import BestKernel, RunInfo
from kernel_scientist.sandbox.resources import KernelResources
from kernel_scientist.tools.evaluation import (
    Check,
    Comparison,
    Evaluation,
    Interval,
    ShapeTiming,
    Verdict,
)

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202ehidden"
RUN_ID = "20260102-030405-678_matmul_abc123"
SPEEDUP = Interval(3.21, 3.1, 3.32, 0.99)


def timing(speedup: Interval | None) -> ShapeTiming:
    return ShapeTiming(
        {"m": 64, "n": 64, "k": 32},
        812.5,
        800.0,
        830.0,
        30,
        4,
        2608.1,
        speedup,
        bound_us=81.25,
        bound_by="flops",
    )


def accepted(speedup: Interval | None, tier: str = "screen") -> Evaluation:
    return Evaluation(
        Verdict.ACCEPTED,
        "",
        tier,
        "cpu",
        "Test CPU",
        "bubblewrap",
        "base-key",
        "key",
        checks=(Check("correctness", True, "worst error 0.1 of the tolerance"),),
        timings=(timing(speedup),),
        speedup=speedup,
        resources=(KernelResources("mm<16>", "gfx942", 40, 0, 20, 0, 0, 2048, 0, 8, "VGPRs", {"mfma": 4}),),
    )


def failed(message: str) -> Evaluation:
    return Evaluation(
        Verdict.COMPILE_ERROR, message, "screen", "cpu", "Test CPU", "bubblewrap", "base-key", "other-key"
    )


def experiment(citation: str) -> Experiment:
    return Experiment(
        description="Larger tiles",
        rubric=("TILE becomes 32",),
        uplift_min=5,
        uplift_max=40,
        innovation=30,
        citations=(citation,),
    )


def write_run(runs_dir: Path, *, finished: bool = True) -> Path:
    """Write the run under `runs_dir` and return its folder."""
    folder = runs_dir / RUN_ID
    (folder / "candidates").mkdir(parents=True)
    recorder = Recorder(folder)
    info = _info(finished)
    recorder.write_info(info)
    recorder.emit(
        ev.RunStarted,
        run_id=RUN_ID,
        problem="matmul",
        kernel="tiled.hip",
        target="cpu",
        device="Test CPU",
        sandbox="bubblewrap",
        models={"coder": "offline"},
        generations=1,
        experiments=1,
        limits={},
        versions={},
    )
    _create(recorder, "0000", None, "TILE = 16\n")
    recorder.emit(ev.EvaluationFinished, candidate_id="0000", evaluation=accepted(None), seconds=1.0)
    recorder.generation = 1
    recorder.emit(ev.GenerationStarted, generations=1, best_id="0000", best_speedup=1.0, totals=ev.Totals())
    _choose(recorder)
    _try(recorder)
    if finished:
        _finish(recorder, info)
    recorder.close()
    return folder


def _choose(recorder: Recorder) -> None:
    passage = ev.CitedPassage(
        id="lds-banks#2",
        title="LDS notes",
        section="Banks",
        source="https://example.org/lds",
        looked_up="2026-12-01",
        text="32 banks",
    )
    recorder.emit(ev.SpeakerSelected, agent="selector")
    reasons = (
        f"It is the only one. <script>window.stolen=1</script> <img src=x onerror=window.stolen=1>{HOSTILE}"
    )
    _say(recorder, "selector", Selection(base_id="0000", reasons=reasons))
    recorder.emit(ev.SpeakerSelected, agent="researcher")
    recorder.emit(ev.PassagesRetrieved, agent="researcher", query="LDS tile", passages=(passage,))
    plan = Hypotheses(
        avenues=(Avenue(title="Tiling"),),
        experiments=(experiment("lds-banks#2"),),
        chosen=(Choice(experiment=0, criterion="most innovative"),),
    )
    usage = ev.Usage(prompt_tokens=100, completion_tokens=20)
    recorder.emit(
        ev.ModelCall,
        agent="researcher",
        purpose="hypotheses",
        model="offline",
        usage=usage,
        cost_usd=0.0,
        seconds=0.1,
    )
    _say(recorder, "researcher", plan)


def _try(recorder: Recorder) -> None:
    evidence = f"kernel.hip:7: error: no such thing '{HOSTILE}'"
    recorder.emit(ev.SpeakerSelected, agent="coder", slot=0, attempt=1)
    _create(recorder, "0001", "0000", f"TILE = {HOSTILE}\n")
    _say(
        recorder,
        "coder",
        CandidateProposal(candidate_id="0001", slot=0, attempt=1, report="TILE is changed."),
    )
    recorder.emit(ev.EvaluationFinished, candidate_id="0001", evaluation=failed(evidence), seconds=0.5)
    failure = EvaluationFailure(
        candidate_id="0001", slot=0, attempt=1, verdict="compile_error", evidence=evidence, tries_left=2
    )
    _say(recorder, "benchmarker", failure)
    points = (
        RubricPoint(item="TILE becomes 32", status="done"),
        RubricPoint(item="the loop is unrolled", status="not done", why="it was already"),
    )
    _create(recorder, "0002", "0000", "TILE = 32\n", attempt=2, report="TILE is 32.", rubric=points)
    _say(
        recorder,
        "coder",
        CandidateProposal(candidate_id="0002", slot=0, attempt=2, report="TILE is 32.", rubric=points),
    )
    recorder.emit(ev.EvaluationFinished, candidate_id="0002", evaluation=accepted(SPEEDUP), seconds=2.0)
    finding = Finding(
        candidate_id="0002",
        slot=0,
        verdict="accepted",
        tried="Larger tiles.",
        happened="Faster.",
        predicted_min=5,
        predicted_max=40,
        measured_uplift=221.0,
        calibration="above",
    )
    _say(recorder, "benchmarker", finding)


def _finish(recorder: Recorder, info: RunInfo) -> None:
    recorder.generation = 0
    comparison = Comparison(
        accepted(None), accepted(SPEEDUP, "confirm"), (timing(SPEEDUP),), SPEEDUP, "faster"
    )
    recorder.emit(
        ev.ComparisonFinished, a_id="0000", b_id="0002", comparison=comparison, improved=True, seconds=9.0
    )
    recorder.write_best({"kernel.hip": "TILE = 32\n"})
    recorder.emit(
        ev.RunFinished, status=info.status, stop_reason=info.stop_reason, exit_code=0, totals=info.totals
    )


def _info(finished: bool) -> RunInfo:
    best = BestKernel(candidate_id="0002", path="best/kernel.hip", speedup=SPEEDUP, tier="confirm")
    return RunInfo(
        id=RUN_ID,
        status="improved" if finished else "running",
        stop_reason="all generations are done",
        exit_code=0 if finished else None,
        started=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        problem="matmul",
        kernel="tiled.hip",
        target="cpu",
        device="Test CPU",
        sandbox="bubblewrap",
        generations=1,
        totals=ev.Totals(prompt_tokens=100, completion_tokens=20, candidates=2, accepted=1, seconds=61.0),
        best=best if finished else None,
    )


def _create(
    recorder: Recorder, name: str, parent: str | None, text: str, attempt: int = 1, **told: Any
) -> None:
    path = recorder.write_candidate(name, text, "")
    diff = unified_diff("TILE = 16\n", text, parent, name) if parent else ""
    recorder.emit(
        ev.CandidateCreated,
        candidate_id=name,
        parent_id=parent,
        slot=0,
        attempt=attempt,
        path=path,
        key=name,
        diff=diff,
        **told,
    )


def _say(
    recorder: Recorder,
    agent: str,
    content: Selection | Hypotheses | CandidateProposal | EvaluationFailure | Finding,
) -> None:
    recorder.emit(ev.MessageSent, agent=agent, content=content, text=content.text)
