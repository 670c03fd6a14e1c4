"""The session loop: baseline, generations in lanes, confirmation, the run folder's first and last words."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment
from kernel_scientist.tools.evaluate import EvaluateKernel
from kernel_scientist.tools.judge import require_accepted

from . import events as ev
from .budget import Budget
from .confirmation import Confirmation
from .generations import Generations
from .interrupts import Interrupted, LimitHit, ModelGone, RecordingOver, StopSession
from .lab import Lab
from .past import Past
from .policies.meaning import shared_meaning
from .population import Population, Sources
from .portfolio_step import join_best
from .recorder import Recorder, new_run_folder
from .report import write_report
from .result import Best, SessionResult
from .run import BestKernel, Run, RunStatus
from .run_info import first_info, info_again
from .run_lock import RunLock
from .setup import Setup
from .stopping import StopSignal
from .transcript.opened import keep_index
from .views import problem_view

__all__ = ["SessionLoop"]

EXIT_CODES: dict[RunStatus, int] = {
    "improved": 0,
    "not_improved": 3,
    "limit": 4,
    "interrupted": 130,
    "failed": 1,
}


@final
class SessionLoop:
    """One run from its first event to its last, or from where `past` left it.

    `lock` is held on a run that goes on; a new one gets a folder and a lock of its own.
    """

    def __init__(
        self,
        setup: Setup,
        stop: StopSignal,
        observer: Callable[[ev.Event], None] | None,
        *,
        past: Past | None = None,
        lock: RunLock | None = None,
    ) -> None:
        self._setup = setup
        self._past = past
        self._kept = past is not None
        self._failed_with = EXIT_CODES["failed"]
        config = setup.config
        if past is None:
            self._run = Run(new_run_folder(config.runs_dir, setup.problem.name))
            self._lock = RunLock(self._run)
            self._info = first_info(self._run, setup)
        else:
            assert lock is not None, "a run that goes on is locked"
            self._run, self._lock = past.run, lock
            self._info = info_again(past, setup)
        self._recorder = self._open_record(observer)
        population = Population(setup.kernel)
        self._evaluator = EvaluateKernel(setup.judge, Sources(population))
        self._lab = Lab(
            problem=problem_view(setup.problem, target=setup.target.name, device=setup.target.device),
            population=population,
            evaluator=self._evaluator,
            library=setup.library,
            recorder=self._recorder,
            budget=Budget(config.limits, spent=None if past is None else past.totals),
            config=config,
            policy=setup.policy,
            prompts=setup.prompts,
            meaning=shared_meaning(config.search.close_in_meaning),
            stop=stop,
        )
        self._generations = Generations(setup, self._lab, past, begun=self._begun)
        self._confirmation = Confirmation(self._lab, setup.judge)

    def _open_record(self, observer: Callable[[ev.Event], None] | None) -> Recorder:
        try:
            return Recorder(
                self._run.path,
                observer=observer,
                secrets=self._setup.secrets,
                seq=0 if self._past is None else self._past.seq,
                info=self._info,
            )
        except KernelScientistError:
            if self._past is None:
                shutil.rmtree(self._run.path, ignore_errors=True)
                self._lock.release(ended=True)
            raise

    async def run(self) -> SessionResult:
        """Run to the end; whatever happens, the run folder says how it ended, and reports on it."""
        result = await self._run_to_end()
        write_report(self._run)
        keep_index(self._run)
        return result

    async def _run_to_end(self) -> SessionResult:
        try:
            self._start()
            await self._begin()
            status, reason = await self._search()
            return self._finish(*await self._settle(status, reason))
        except Interrupted as stop:
            return self._finish("interrupted", str(stop), self._confirmation.unconfirmed())
        except BaseException as error:
            if self._kept or not isinstance(error, KernelScientistError):
                self._fail(error)
            else:
                self._drop()
            raise
        finally:
            self._recorder.close()
            self._lock.release(ended=self._run.is_over)

    def _start(self) -> None:
        if self._past is not None and self._past.sittings:
            self._take_up(self._past)
            return
        setup, info = self._setup, self._info
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

    def _take_up(self, past: Past) -> None:
        """Restore what the record holds, and say that the run goes on."""
        population = self._lab.population
        for candidate in past.candidates:
            member = population.restore(candidate)
            if member.evaluation is not None:
                self._evaluator.restore(member.id, member.evaluation)
        self._lab.shown.update(past.shown)
        self._recorder.emit(
            ev.RunResumed,
            run_id=self._info.id,
            sitting=past.sittings + 1,
            generations=self._setup.config.generations,
            interrupted=past.interrupted,
            limits=self._setup.config.limits.model_dump(),
            versions=self._info.versions,
            totals=past.totals,
            notes=past.notes,
        )
        best, previous = population.best, past.best_id or population.baseline.id
        if best.evaluation is not None and best.evaluation.speedup is not None and best.id != previous:
            self._lab.announce_best(best, previous)

    async def _begin(self) -> None:
        """Judge the starting kernel. Where that fails the fault is the user's own, and no run is kept."""
        lab, baseline = self._lab, self._lab.population.baseline
        if self._past is None or not self._past.candidates:
            lab.announce(baseline)
        evaluation = await lab.evaluate(baseline.id)
        require_accepted(evaluation, self._setup.kernel.path)
        self._kept = True

    async def _search(self) -> tuple[RunStatus | None, str]:
        """The generations. A status is given when something other than their number ended them."""
        generations = self._setup.config.generations
        try:
            await self._generations.run()
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
        if self._generations.nothing_to_try is not None:
            return None, self._generations.nothing_to_try
        self._require_answers()
        if generations == 1:
            return None, "the one generation is done"
        return None, f"all {generations} generations are done"

    def _without_models(self, gone: ModelGone) -> tuple[RunStatus, str]:
        """What was found is kept and can be confirmed without a model; raises where nothing was."""
        if not self._lab.answers.given and self._past is None:
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

    async def _settle(self, status: RunStatus | None, reason: str) -> tuple[RunStatus, str, Best | None]:
        """Status, reason and best kernel; confirmed, unless somebody waits for the end."""
        unusable = str(self._lab.answers)
        if unusable and self._past is not None:
            unusable += ", counted since the run went on"
        reason = f"{reason}; {unusable}" if unusable else reason
        if status == "interrupted":
            return status, reason, self._confirmation.unconfirmed()
        if status is None:
            await join_best(self._lab)
        best = await self._confirmation.confirmed()
        if status is not None:
            return status, reason, best
        return ("improved" if best is not None else "not_improved"), reason, best

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

    def _drop(self) -> None:
        self._recorder.close()
        shutil.rmtree(self._run.path, ignore_errors=True)

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
            write_report(self._run)

    def _begun(self, generation: int) -> None:
        self._update_info(generation=max(generation, self._info.generation))

    def _update_info(self, **changes: object) -> None:
        changes["totals"] = self._lab.budget.totals
        self._info = self._info.model_copy(update=changes)
        self._recorder.write_info(self._info)


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, (KeyboardInterrupt, asyncio.CancelledError, StopSession))
