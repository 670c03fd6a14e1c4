"""A session: the starting kernel is judged, generations of agents converse, the best is confirmed.

from kernel_scientist.agents import Session
result = Session("matmul", target="cpu", generations=4).run()
print(result.best.speedup, result.best.path)
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from kernel_scientist.tools.evaluation import Comparison, Interval

from .config import Config, Limits, load_config
from .events import Event
from .run import Run, RunStatus

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient

    from kernel_scientist.tools.problem import Problem
    from kernel_scientist.tools.settings import JudgeSettings
    from kernel_scientist.tools.targets import Target

    from .lab import Library, StopSignal
    from .policies import Policy

__all__ = ["Best", "Session", "SessionResult"]

_SAME_REQUEST_S = 0.5


@dataclass(frozen=True, slots=True)
class Best:
    """The winner. `speedup` is over the starting kernel, from fresh pairs when `comparison` is there."""

    candidate_id: str
    path: Path
    speedup: Interval
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class SessionResult:
    """How a session ended. Exit codes: 0 improved, 3 nothing better, 4 a limit, 130 interrupted."""

    run: Run
    status: RunStatus
    stop_reason: str
    best: Best | None
    exit_code: int


@final
class Session:
    """One run of the scientist on one problem. Arguments that are ``None`` come from `config`.

    `config` itself is by default what file and environment say. `observer` gets every event as it is
    written, from the session's own thread. `models` maps an agent (``selector`` ...) to a model's name
    or an AutoGen client and overrides `model` for it. `kernel` is a file, or a name of the problem's;
    `judge` says how hard the judge looks. `policy` is a search policy's name, or one of your own
    (`policies.Policy`); `prompts` a folder of prompt files that replace the bundled ones.
    Without a `problem` the target must be ``recorded:FILE``.
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
        self._observer = observer

    def run(self) -> SessionResult:
        """Run to the end. Raises `UsageError` for a fault in the user's files or flags.

        The first Ctrl-C, or SIGTERM, ends the session in order (exit code 130), a second Ctrl-C at once.
        """

        async def main() -> SessionResult:
            from .lab import StopSignal

            stop = StopSignal()
            _listen(stop)
            return await self._run(stop)

        return asyncio.run(main())

    async def run_async(self) -> SessionResult:
        """`run` inside an event loop of the caller's; cancelling ends the session in order."""
        from .lab import StopSignal

        return await self._run(StopSignal())

    async def _run(self, stop: StopSignal) -> SessionResult:
        # AutoGen takes most of a second to import; the command line needs it only here.
        from .loop import SessionLoop
        from .setup import prepare

        setup = await prepare(
            self._config,
            problem=self._problem,
            kernel=self._kernel,
            target=self._target,
            model=self._model,
            models=self._models,
            knowledge=self._knowledge,
            settings=self._judge,
            policy=self._policy,
        )
        try:
            return await SessionLoop(setup, stop, self._observer).run()
        finally:
            await setup.close()


def _listen(stop: StopSignal) -> None:
    """Let Ctrl-C and SIGTERM set `stop` until the loop is closed; a second Ctrl-C is Python's own, at once.

    One that comes with the first is the same request: `timeout` signals the process and then its group.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        stop.set("interrupted")
        loop.call_later(_SAME_REQUEST_S, loop.remove_signal_handler, signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, stop.set, "terminated")
