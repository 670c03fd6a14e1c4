"""The session loop: baseline, generations, confirmation, and the run folder's first and last words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment
from kernel_scientist.sandbox.files import FileLock, explained
from kernel_scientist.tools.evaluate import EvaluateKernel
from kernel_scientist.tools.evaluation import Comparison
from kernel_scientist.tools.judge import require_accepted

from . import events as ev
from .agent import ScientistAgent
from .benchmarker import BenchmarkerAgent
from .budget import Budget
from .chat import BENCHMARKER, CODER, RESEARCHER, SELECTOR, as_message, content_of, make_team
from .coder import CoderAgent
from .interrupts import Interrupted, LimitHit, ModelGone, RecordingOver, StopSession
from .lab import Lab, StopSignal
from .messages import GenerationTask, Hypotheses
from .models.recording import RecordingClient
from .population import Member, Population
from .recorder import Recorder, new_run_folder, unified_diff
from .researcher import ResearcherAgent
from .run import LOCK_FILE, BestKernel, Run, RunInfo, RunStatus
from .selector import SelectorAgent
from .session import Best, SessionResult
from .setup import AGENTS, Setup
from .views import problem_view

__all__ = ["SessionLoop"]

CONFIRMATIONS = 3
"""So many of the fastest candidates are measured again before the session says that none is better."""

EXIT_CODES: dict[RunStatus, int] = {
    "improved": 0,
    "not_improved": 3,
    "limit": 4,
    "interrupted": 130,
    "failed": 1,
}


@final
class SessionLoop:
    """One run from its first event to its last."""

    def __init__(self, setup: Setup, stop: StopSignal, observer: Callable[[ev.Event], None] | None) -> None:
        self._setup = setup
        config = setup.config
        folder = new_run_folder(config.runs_dir, setup.problem.name)
        self._run = Run(folder)
        self._alive = FileLock(folder / LOCK_FILE, purpose="(running this session)")
        with explained("lock the run", folder):
            self._alive.__enter__()
        self._recorder = Recorder(folder, observer=observer, secrets=setup.secrets)
        population = Population(setup.kernel)
        self._lab = Lab(
            problem=problem_view(setup.problem, target=setup.target.name, device=setup.target.device),
            population=population,
            evaluator=EvaluateKernel(setup.judge, population),
            library=setup.library,
            recorder=self._recorder,
            budget=Budget(config.limits),
            config=config,
            policy=setup.policy,
            prompts=setup.prompts,
            stop=stop,
        )
        self._clients = {name: RecordingClient(setup.models[name], name, self._lab) for name in AGENTS}
        self._info = self._first_info()
        self._failed_with = EXIT_CODES["failed"]

    async def run(self) -> SessionResult:
        """Run to the end; whatever happens, the run folder says how it ended."""
        try:
            self._start()
            await self._begin()
            status, reason = await self._search()
            best = await self._settle(interrupted=status == "interrupted")
            return self._finish(*self._verdict(status, reason, best), best)
        except Interrupted as stop:
            return self._finish("interrupted", str(stop), self._unconfirmed())
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._recorder.close()
            self._alive.__exit__(None, None, None)
            if self._info.status != "running":
                (self._run.path / LOCK_FILE).unlink(missing_ok=True)

    def _start(self) -> None:
        setup, info = self._setup, self._info
        self._recorder.write_info(info)
        self._recorder.emit(
            ev.RunStarted,
            run_id=info.id,
            problem=setup.problem.name,
            kernel=info.kernel,
            target=info.target,
            device=info.device,
            sandbox=info.sandbox,
            models=info.models,
            generations=info.generations,
            experiments=setup.config.experiments,
            limits=setup.config.limits.model_dump(),
            versions=info.versions,
        )

    async def _begin(self) -> None:
        """Judge the starting kernel. Where that fails the fault is the user's own, and no run is kept."""
        lab, baseline = self._lab, self._lab.population.baseline
        try:
            lab.announce(baseline)
            evaluation = await lab.evaluate(baseline.id)
            require_accepted(evaluation, self._setup.kernel.path)
        except KernelScientistError:
            self._recorder.close()
            shutil.rmtree(self._run.path, ignore_errors=True)
            raise

    async def _search(self) -> tuple[RunStatus | None, str]:
        """The generations. A status is given when something other than their number ended them."""
        generations = self._setup.config.generations
        for generation in range(1, generations + 1):
            try:
                self._lab.stop.check()
                self._lab.budget.check_evaluation()
                reason = await self._generation(generation)
            except LimitHit as limit:
                self._recorder.emit(
                    ev.LimitReached,
                    limit=limit.limit,
                    used=limit.used,
                    maximum=limit.maximum,
                    sentence=str(limit),
                )
                return "limit", str(limit)
            except Interrupted as stop:
                return "interrupted", str(stop)
            except RecordingOver as over:
                return None, str(over)
            except ModelGone as gone:
                return self._without_models(gone)
            if reason is not None:
                return None, reason
        self._require_answers()
        if generations == 1:
            return None, "the one generation is done"
        return None, f"all {generations} generations are done"

    def _without_models(self, gone: ModelGone) -> tuple[RunStatus, str]:
        """What was found is kept and can be confirmed without a model; raises where nothing was."""
        if not self._lab.answers.given:
            raise gone.cause
        self._recorder.emit(ev.ErrorRecorded, where="models", message=str(gone), recovered=False)
        self._failed_with = gone.cause.exit_code
        return "failed", str(gone)

    def _require_answers(self) -> None:
        """A session in which no model ever answered has found out nothing: raise rather than report on it."""
        answers = self._lab.answers
        if answers.given or not (answers.failed or answers.empty):
            return
        calls = answers.failed + answers.empty
        cause = f"the last failure: {answers.fault.rstrip('.')}" if answers.fault else "they were empty"
        models = ", ".join(sorted(set(self._info.models.values())))
        raise UnusableEnvironment(
            f"The model gave no usable answer in {calls} calls ({models}; {cause}); "
            "check models.base_url and the model's name, then run again."
        )

    async def _generation(self, generation: int) -> str | None:
        """One conversation; returns why there is nothing more to try, when an agent said so."""
        lab, config = self._lab, self._setup.config
        self._recorder.generation = generation
        self._update_info(generation=generation)
        best = lab.population.best
        self._recorder.emit(
            ev.GenerationStarted,
            generations=config.generations,
            best_id=best.id,
            best_speedup=best.speedup,
            totals=lab.budget.totals,
        )
        task = GenerationTask(
            generation=generation,
            generations=config.generations,
            experiments=config.experiments,
            build_repairs=config.repairs.build,
            result_repairs=config.repairs.result,
        )
        conversation = asyncio.ensure_future(self._converse(task))
        try:
            hypotheses = await asyncio.shield(conversation)
        except asyncio.CancelledError:
            # The chat is told to stop and left to end by itself: a cancelled AutoGen team may hang.
            lab.stop.set("cancelled")
            await asyncio.wait({conversation}, timeout=30)
            raise
        self._recorder.generation = 0
        if lab.failure is not None:
            failure, lab.failure = lab.failure, None
            raise failure
        return hypotheses.nothing_to_try if hypotheses is not None else None

    async def _converse(self, task: GenerationTask) -> Hypotheses | None:
        team = make_team(self._agents(), self._clients[SELECTOR])
        hypotheses: Hypotheses | None = None
        async for message in team.run_stream(task=as_message(task, "manager")):
            content = content_of(message)
            if isinstance(content, Hypotheses):
                hypotheses = content
        return hypotheses

    def _agents(self) -> list[ScientistAgent]:
        lab, clients = self._lab, self._clients
        return [
            SelectorAgent(
                SELECTOR, "Picks the kernel to build on and a contrasting one.", lab, clients[SELECTOR]
            ),
            ResearcherAgent(
                RESEARCHER, "Reads literature and designs experiments.", lab, clients[RESEARCHER]
            ),
            CoderAgent(CODER, "Writes the kernel of an experiment.", lab, clients[CODER]),
            BenchmarkerAgent(BENCHMARKER, "Has it judged and writes the finding.", lab, clients[BENCHMARKER]),
        ]

    async def _settle(self, *, interrupted: bool) -> Best | None:
        """Measure the fastest candidates again, against the starting kernel, until one holds its claim."""
        if interrupted:
            return self._unconfirmed()
        population = self._lab.population
        leading = [one for one in population.accepted() if (one.speedup or 0.0) > 1.0][:CONFIRMATIONS]
        for member in leading:
            comparison = await self._compare(member)
            if comparison.speedup.low > 1.0:
                return self._write_best(member, comparison)
        return None

    async def _compare(self, member: Member) -> Comparison:
        lab, baseline = self._lab, self._lab.population.baseline
        self._recorder.emit(ev.EvaluationStarted, candidate_id=member.id, tier="confirm")
        assert baseline.kernel is not None and member.kernel is not None
        began = time.perf_counter()
        work = asyncio.to_thread(self._setup.judge.compare, baseline.kernel, member.kernel)
        comparison = await lab.stop.unless_stopped(work)
        self._recorder.emit(
            ev.ComparisonFinished,
            a_id=baseline.id,
            b_id=member.id,
            comparison=comparison,
            improved=comparison.speedup.low > 1.0,
            seconds=time.perf_counter() - began,
        )
        return comparison

    def _unconfirmed(self) -> Best | None:
        best = self._lab.population.best
        return None if best is self._lab.population.baseline else self._write_best(best, None)

    def _write_best(self, member: Member, comparison: Comparison | None) -> Best:
        evaluation = member.evaluation
        assert evaluation is not None and evaluation.speedup is not None
        baseline = self._lab.population.baseline
        files = {
            "kernel.hip": member.source,
            "evaluation.json": json.dumps(evaluation.to_dict(), indent=2) + "\n",
            "changes.diff": unified_diff(baseline.source, member.source, baseline.id, member.id),
        }
        if comparison is not None:
            files["comparison.json"] = json.dumps(comparison.to_dict(), indent=2) + "\n"
        self._recorder.write_best(files)
        speedup = evaluation.speedup if comparison is None else comparison.speedup
        return Best(member.id, self._run.path / "best" / "kernel.hip", speedup, comparison)

    def _verdict(self, status: RunStatus | None, reason: str, best: Best | None) -> tuple[RunStatus, str]:
        unusable = str(self._lab.answers)
        reason = f"{reason}; {unusable}" if unusable else reason
        if status is not None:
            return status, reason
        return ("improved" if best is not None else "not_improved"), reason

    def _finish(self, status: RunStatus, reason: str, best: Best | None) -> SessionResult:
        exit_code = self._failed_with if status == "failed" else EXIT_CODES[status]
        totals = self._lab.budget.totals
        kept: BestKernel | None = None
        if best is not None:
            tier = "screen" if best.comparison is None else "confirm"
            kept = BestKernel(
                candidate_id=best.candidate_id, path="best/kernel.hip", speedup=best.speedup, tier=tier
            )
        self._recorder.emit(
            ev.RunFinished,
            status=status,
            stop_reason=reason,
            exit_code=exit_code,
            best_id=None if kept is None else kept.candidate_id,
            best_path=None if kept is None else kept.path,
            speedup=None if kept is None else kept.speedup,
            totals=totals,
        )
        self._update_info(
            status=status, stop_reason=reason, exit_code=exit_code, finished=datetime.now(UTC), best=kept
        )
        return SessionResult(self._run, status, reason, best, exit_code)

    def _fail(self, error: BaseException) -> None:
        """Leave a run that says that it failed, and why, as far as it can still be written."""
        status: RunStatus = "interrupted" if _is_interrupt(error) else "failed"
        code = error.exit_code if isinstance(error, KernelScientistError) else EXIT_CODES[status]
        if status == "interrupted":
            reason = self._lab.stop.reason or "interrupted"
        else:
            reason = str(error) or type(error).__name__
            with contextlib.suppress(KernelScientistError, ValueError):
                self._recorder.emit(ev.ErrorRecorded, where="session", message=reason, recovered=False)
        with contextlib.suppress(KernelScientistError, ValueError):
            self._recorder.emit(
                ev.RunFinished,
                status=status,
                stop_reason=reason,
                exit_code=code,
                totals=self._lab.budget.totals,
            )
        with contextlib.suppress(KernelScientistError, ValueError):
            self._update_info(status=status, stop_reason=reason, exit_code=code, finished=datetime.now(UTC))

    def _update_info(self, **changes: object) -> None:
        changes["totals"] = self._lab.budget.totals
        self._info = self._info.model_copy(update=changes)
        self._recorder.write_info(self._info)

    def _first_info(self) -> RunInfo:
        setup = self._setup
        return RunInfo(
            id=self._run.id,
            status="running",
            started=datetime.now(UTC),
            versions=setup.versions,
            config=setup.config.model_dump(mode="json"),
            problem=setup.problem.name,
            problem_path=str(setup.problem.folder),
            problem_key=setup.problem.key,
            kernel=str(setup.kernel.path or ""),
            kernel_key=setup.kernel.key,
            target=setup.target.name,
            device=setup.target.device,
            sandbox=setup.target.sandbox,
            models={name: model.name for name, model in setup.models.items()},
            prices={
                model.name: model.price.model_dump(exclude_defaults=True)
                for model in setup.models.values()
                if model.price is not None
            },
            prompts={name: prompt.digest for name, prompt in setup.prompts.items()},
            policy=setup.policy.name,
            seed=setup.config.seed,
            generations=setup.config.generations,
        )


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, (KeyboardInterrupt, asyncio.CancelledError, StopSession))
