"""The session loop: baseline, generations in lanes, confirmation, the run folder's first and last words."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment
from kernel_scientist.tools.evaluate import EvaluateKernel
from kernel_scientist.tools.judge import require_accepted

from . import events as ev
from .budget import Budget
from .confirmation import Confirmation
from .interrupts import Halted, Interrupted, LimitHit, ModelGone, RecordingOver, StopSession
from .lab import Lab
from .lane import Lane, lane_of
from .past import Past
from .policies.headroom import no_headroom
from .policies.meaning import shared_meaning
from .population import Population, Sources
from .portfolio_step import join_best
from .recorder import Recorder, new_run_folder
from .report import write_report
from .run import BestKernel, Run, RunInfo, RunStatus
from .run_lock import RunLock
from .session import Best, SessionResult
from .setup import Setup
from .stopping import StopSignal
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
        self._nothing_to_try: str | None = None
        config = setup.config
        if past is None:
            self._run = Run(new_run_folder(config.runs_dir, setup.problem.name))
            self._lock = RunLock(self._run)
            self._info = self._first_info()
        else:
            assert lock is not None, "a run that goes on is locked"
            self._run, self._lock = past.run, lock
            self._info = self._info_again(past)
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
        for name in past.unannounced:
            self._recorder.drop_candidate(name)
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
        if self._past is not None and generations <= self._past.info.generations:
            self._nothing_to_try = self._past.nothing_to_try
        try:
            await self._run_lanes()
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
        if self._nothing_to_try is not None:
            return None, self._nothing_to_try
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

    async def _run_lanes(self) -> None:
        """Run all lanes to their end; raises what ended the session, the gravest of it."""
        config = self._setup.config
        numbers = range(1, config.generations + 1)
        pending = numbers if self._past is None else self._past.pending(config.generations)
        shares: dict[int, list[int]] = {}
        for generation in pending:
            shares.setdefault(lane_of(generation, config.lanes), []).append(generation)
        tasks = [asyncio.ensure_future(self._run_lane(number, share)) for number, share in shares.items()]
        if not tasks:
            return
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        faults = [fault for task in tasks if (fault := task.exception()) is not None]
        if faults:
            raise min(faults, key=_gravity)

    async def _run_lane(self, number: int, generations: Sequence[int]) -> None:
        lane = Lane(number, self._setup, self._lab)
        try:
            for generation in generations:
                past = self._past.conversations.get(generation) if self._past is not None else None
                if (past is None or not past.started) and self._is_enough():
                    return
                self._lab.stop.check()
                self._lab.budget.check_evaluation()
                self._update_info(generation=max(generation, self._info.generation))
                reason = await lane.converse(generation, past)
                self._nothing_to_try = self._nothing_to_try or reason
        except RecordingOver:
            # Other lanes' recordings may have more.
            raise
        except BaseException:
            self._lab.stop.halt()
            raise

    def _is_enough(self) -> bool:
        """Whether no other conversation is worth beginning; `_nothing_to_try` then says why."""
        if self._nothing_to_try is None:
            self._nothing_to_try = no_headroom(self._lab.population, self._setup.config.search)
        return self._nothing_to_try is not None

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
            problem_path=str(setup.problem.folder.absolute()),
            problem_key=setup.problem.key,
            kernel=str(setup.kernel.path.absolute()) if setup.kernel.path is not None else "",
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

    def _info_again(self, past: Past) -> RunInfo:
        """``run.json`` of a run that goes on: what may have changed since, and no end."""
        setup = self._setup
        return past.info.model_copy(
            update={
                "status": "running",
                "stop_reason": "",
                "exit_code": None,
                "finished": None,
                "versions": setup.versions,
                "config": setup.config.model_dump(mode="json"),
                "prompts": {name: prompt.digest for name, prompt in setup.prompts.items()},
                "sandbox": setup.target.sandbox,
                "generations": setup.config.generations,
                "totals": past.totals,
            }
        )


def _is_interrupt(error: BaseException) -> bool:
    return isinstance(error, (KeyboardInterrupt, asyncio.CancelledError, StopSession))


def _gravity(fault: BaseException) -> int:
    """Which of several lanes' ends is told: the smallest."""
    kinds = (Interrupted, ModelGone, LimitHit, RecordingOver, Halted)
    return next((rank for rank, kind in enumerate(kinds, start=1) if isinstance(fault, kind)), 0)
