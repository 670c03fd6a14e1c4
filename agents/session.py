"""A session: the starting kernel is judged, generations of agents converse, the best is confirmed.

from kernel_scientist.agents import Session
result = Session("matmul", target="cpu", generations=4).run()
print(result.best.speedup, result.best.path)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from .config import Config, Limits, load_config
from .events import Event
from .result import Best, SessionResult, recorded_result, with_experience
from .run import Run

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient

    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.settings import JudgeSettings
    from kernel_scientist.tools.targets import Target

    from .lab import Library
    from .policies import Policy
    from .setup import AgentFactory, Setup
    from .stopping import StopSignal
    from .telemetry.config import SpansConfig
    from .telemetry.otlp import LiveSpans

__all__ = ["Best", "Session", "SessionResult", "recorded_result"]


@final
class Session:
    """One run of the scientist on one problem. Arguments that are ``None`` come from `config`.

    `config` itself is by default what file and environment say. `observer` gets every event as it is
    written, from the session's own thread. `models` maps an agent (``selector`` ...) to a model's name
    or an AutoGen client and overrides `model` for it; `agents` maps one to what makes another agent in its
    place. `kernel` is a file, or a name of the problem's; `judge` says how hard the judge looks. `policy` is
    a search policy's name, or one of your own (`policies.Policy`); `prompts` a folder of prompt files that
    replace the bundled ones. With `learn` the findings are kept as experience in the knowledge base when
    the session has ended. Without a `problem` the target must be ``recorded:FILE``.
    """

    def __init__(
        self,
        problem: str | Path | Problem | None = None,
        *,
        kernel: str | Path | None = None,
        target: str | Target | None = None,
        model: str | ChatCompletionClient | None = None,
        generations: int | None = None,
        experiments: int | None = None,
        runs_dir: str | Path | None = None,
        knowledge: Library | None = None,
        limits: Limits | None = None,
        allow_no_sandbox: bool | None = None,
        seed: int | None = None,
        judge: JudgeSettings | None = None,
        models: Mapping[str, str | ChatCompletionClient] | None = None,
        policy: str | Policy | None = None,
        prompts: str | Path | None = None,
        agents: Mapping[str, AgentFactory] | None = None,
        lanes: int | None = None,
        learn: bool | None = None,
        config: Config | None = None,
        observer: Callable[[Event], None] | None = None,
    ) -> None:
        """Resolve the configuration only; files and devices are touched by `run`."""
        named: dict[str, Any] = {
            "target": target if isinstance(target, str) else None,
            "model": model if isinstance(model, str) else None,
            "generations": generations,
            "experiments": experiments,
            "runs_dir": None if runs_dir is None else Path(runs_dir),
            "limits": limits,
            "allow_no_sandbox": allow_no_sandbox,
            "seed": seed,
            "policy": policy if isinstance(policy, str) else None,
            "prompts": None if prompts is None else Path(prompts),
            "lanes": lanes,
            "learn": learn,
        }
        self._config = (config or load_config()).replaced(
            {name: value for name, value in named.items() if value is not None}
        )
        self._problem = problem
        self._kernel = kernel
        self._target = target
        self._model = model
        self._models = dict(models or {})
        self._knowledge = knowledge
        self._judge = judge
        self._policy = None if isinstance(policy, str) else policy
        self._agents = dict(agents or {})
        self._observer = observer
        self._resumed: Run | None = None
        self._learn_anyway = False
        self._result: SessionResult | None = None
        self._cancelled = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: StopSignal | None = None

    @classmethod
    def resume(
        cls,
        run: str | Path | Run = "last",
        *,
        runs_dir: str | Path | None = None,
        target: Target | None = None,
        model: ChatCompletionClient | None = None,
        generations: int | None = None,
        knowledge: Library | None = None,
        limits: Limits | None = None,
        prompts: str | Path | None = None,
        otel: SpansConfig | None = None,
        learn: bool | None = None,
        judge: JudgeSettings | None = None,
        models: Mapping[str, str | ChatCompletionClient] | None = None,
        agents: Mapping[str, AgentFactory] | None = None,
        policy: Policy | None = None,
        observer: Callable[[Event], None] | None = None,
    ) -> Session:
        """A session that goes on with a recorded run, with the run's own configuration.

        `generations`, `prompts`, `learn` and what `limits` and `otel` set replace the run's; objects passed
        in when it was made are passed again. A run that is finished stays as it is; with `learn` its findings
        are kept. Raises `UsageError`.
        """
        from .resuming import config_of, kernel_of, problem_of

        if not isinstance(run, Run):
            run = Run.open(run, runs_dir=load_config().runs_dir if runs_dir is None else runs_dir)
        session = cls(
            problem_of(run.info),
            kernel=kernel_of(run),
            target=target,
            model=model,
            knowledge=knowledge,
            judge=judge,
            models=models,
            agents=agents,
            policy=policy,
            config=config_of(
                run,
                generations=generations,
                limits=limits,
                prompts=None if prompts is None else Path(prompts),
                otel=otel,
                learn=learn,
            ),
            observer=observer,
        )
        session._resumed = run
        session._learn_anyway = bool(learn)
        return session

    def run(self) -> SessionResult:
        """Run to the end. Raises `UsageError` for a fault in the user's files or flags.

        The first Ctrl-C, or SIGTERM, ends the session in order (exit code 130): an evaluation in flight gets
        ten seconds to end. A second Ctrl-C waives them.
        """

        async def main() -> SessionResult:
            return await self._run(listen=True)

        return asyncio.run(main())

    async def run_async(self) -> SessionResult:
        """`run` inside an event loop of the caller's; cancelling ends the session in order."""
        return await self._run()

    async def stream(self) -> AsyncGenerator[Event]:
        """`run_async` as an iterator of the events; leaving it early ends the session in order.

        What `run_async` would raise is raised after the last event; `result` is there then.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._run(events.put_nowait))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    @property
    def result(self) -> SessionResult | None:
        """How the session ended; ``None`` until it has."""
        return self._result

    def cancel(self, reason: str = "cancelled") -> None:
        """End the session in order, as the first Ctrl-C does; from any thread, an observer, or in advance."""
        self._cancelled = reason
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
                self._loop.call_soon_threadsafe(self._stop.set, reason)

    async def _run(
        self, listener: Callable[[Event], None] | None = None, *, listen: bool = False
    ) -> SessionResult:
        # AutoGen takes most of a second to import; the command line needs it only here.
        from .stopping import StopSignal, listen_to_signals

        self._loop, self._stop = asyncio.get_running_loop(), StopSignal()
        if listen:
            listen_to_signals(self._stop)
        if self._cancelled:
            self._stop.set(self._cancelled)
        spans = self._live_spans()
        watchers = (self._observer, listener, None if spans is None else spans.observe)
        observers = [one for one in watchers if one is not None]

        def observe(event: Event) -> None:
            for one in observers:
                one(event)

        try:
            if self._resumed is None:
                self._result = await self._new_run(self._stop, observe)
            else:
                self._result = await self._go_on(self._resumed, self._stop, observe)
        finally:
            if spans is not None:
                spans.close()
        return self._result

    def _live_spans(self) -> LiveSpans | None:
        from .telemetry.otlp import live_spans

        return live_spans(self._config.otel)

    async def _new_run(self, stop: StopSignal, observer: Callable[[Event], None]) -> SessionResult:
        from .loop import SessionLoop

        setup = await self._prepare()
        try:
            return with_experience(await SessionLoop(setup, stop, observer).run(), setup.keeper)
        finally:
            await setup.close()

    async def _go_on(self, run: Run, stop: StopSignal, observer: Callable[[Event], None]) -> SessionResult:
        from .loop import SessionLoop
        from .mending import require_readable, set_aside
        from .past import read_past
        from .resuming import differences, is_finished, require_room, require_same
        from .run_lock import RunLock

        if is_finished(run.info, self._config):
            return self._finished(run)
        lock = RunLock(run)
        try:
            if is_finished(run.info, self._config):
                return self._finished(run)
            past = read_past(run)
            require_readable(past)
            require_room(past, self._config)
            setup = await self._prepare(sitting=past.sittings)
            try:
                require_same(run, setup)
                past.notes = (*differences(run.info, setup), *set_aside(past))
                result = await SessionLoop(setup, stop, observer, past=past, lock=lock).run()
                return with_experience(result, setup.keeper)
            finally:
                await setup.close()
        finally:
            lock.release(ended=run.is_over)

    def _finished(self, run: Run) -> SessionResult:
        """How a run that is over ended; what it found out is kept where this session was told to."""
        result = recorded_result(run)
        if not self._learn_anyway:
            return result
        if self._knowledge is not None:
            from .setup import keeper_of

            return with_experience(result, keeper_of(self._knowledge))
        from kernel_scientist.knowledge import KnowledgeBase

        config = self._config
        endpoint = config.embedding.settings()
        with KnowledgeBase.open(chroma=config.chroma, embedder="recorded", endpoint=endpoint) as base:
            return with_experience(result, base)

    async def _prepare(self, *, sitting: int = 0) -> Setup:
        from .setup import prepare

        return await prepare(
            self._config,
            problem=self._problem,
            kernel=self._kernel,
            target=self._target,
            model=self._model,
            models=self._models,
            knowledge=self._knowledge,
            settings=self._judge,
            policy=self._policy,
            agents=self._agents,
            sitting=sitting,
        )
