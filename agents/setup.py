"""Everything a session needs, opened and checked before anything is written."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets import Target, resolve_target, resolve_together

from .agent import ScientistAgent
from .chat import BENCHMARKER, CODER, RESEARCHER, SELECTOR
from .config import AgentModel, Config
from .lab import Lab, Library
from .models.registry import OpenedModel, open_model, passed_client
from .policies.base import Policy
from .policies.registry import make_policy
from .prompting import Prompt, load_prompts

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient

    from kernel_scientist.knowledge import KnowledgeBase

    from .models.recording import RecordingClient

__all__ = ["AGENTS", "AgentFactory", "Setup", "keeper_of", "prepare"]

AGENTS = (SELECTOR, RESEARCHER, CODER, BENCHMARKER)

AgentFactory = Callable[[Lab, "RecordingClient"], ScientistAgent]
"""Makes an agent for one conversation, from its lane's lab and its model."""


@dataclass(slots=True)
class Setup:
    """The parts of a session. `models` has one entry for each agent, `agents` those that the caller replaces;
    `owned` is closed at the end; `keeper` is where experience is kept, where that is asked for."""

    config: Config
    problem: Problem
    kernel: Kernel
    target: Target
    judge: Judge
    models: dict[str, OpenedModel]
    library: Library
    policy: Policy
    prompts: Mapping[str, Prompt]
    agents: dict[str, AgentFactory] = field(default_factory=dict[str, AgentFactory])
    owned: KnowledgeBase | None = None
    keeper: KnowledgeBase | None = None
    versions: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def secrets(self) -> set[str]:
        return {secret for model in self.models.values() for secret in model.secrets}

    async def close(self) -> None:
        """Close what `prepare` opened. Clients that the caller passed in stay the caller's."""
        if self.owned is not None:
            self.owned.close()
        for client in {id(one.client): one.client for one in self.models.values() if one.ours}.values():
            await client.close()


async def prepare(
    config: Config,
    *,
    problem: str | Path | Problem | None,
    kernel: str | Path | None,
    target: str | Target | None,
    model: str | ChatCompletionClient | None,
    models: Mapping[str, str | ChatCompletionClient],
    knowledge: Library | None,
    settings: JudgeSettings | None,
    policy: Policy | None = None,
    agents: Mapping[str, AgentFactory] | None = None,
    sitting: int = 0,
) -> Setup:
    """Open the parts, cheap checks first. Raises `UsageError` or `UnusableEnvironment`.

    A `sitting` after the first draws other shapes and inputs than those before.
    """
    _require_agents(agents or {}, "replace")
    if config.learn and knowledge is not None:
        keeper_of(knowledge)
    prompts = load_prompts(config.prompts)
    search = make_policy(config.policy) if policy is None else policy
    if problem is None or isinstance(problem, str):
        problem, wanted = resolve_together(problem, config.target)
        config = config.replaced({"target": wanted})
    loaded = problem if isinstance(problem, Problem) else Problem.load(problem)
    start = _load_kernel(loaded, kernel)
    opened = _open_models(config, model, models)
    _check_prices(config, opened)
    place = (
        resolve_target(config.target, allow_no_sandbox=config.allow_no_sandbox)
        if target is None or isinstance(target, str)
        else target
    )
    for one in {id(item): item for item in opened.values()}.values():
        if one.check is not None:
            await one.check()
    library, owned, keeper = _open_library(config, knowledge, sitting)
    return Setup(
        config=config,
        problem=loaded,
        kernel=start,
        target=place,
        judge=Judge(loaded, place, start, settings=settings, seed=_seed(config.seed, sitting)),
        models=opened,
        agents=dict(agents or {}),
        library=library,
        policy=search,
        prompts=prompts,
        owned=owned,
        keeper=keeper,
        versions=_versions(),
    )


def keeper_of(library: Library) -> KnowledgeBase:
    """The knowledge base that a library passed in is. Raises `UsageError` where it is none."""
    from kernel_scientist.knowledge import KnowledgeBase

    if isinstance(library, KnowledgeBase):
        return library
    raise UsageError(
        "Findings are kept in a knowledge base, and the library passed in is none; pass a KnowledgeBase, "
        "or leave out 'learn'."
    )


def _open_library(
    config: Config, knowledge: Library | None, sitting: int
) -> tuple[Library, KnowledgeBase | None, KnowledgeBase | None]:
    """The library, the one of ours that is to be closed, and the one that is to learn."""
    from kernel_scientist.knowledge import KnowledgeBase

    if knowledge is not None:
        return knowledge, None, keeper_of(knowledge) if config.learn else None
    ours = KnowledgeBase.open(
        chroma=config.chroma,
        # A run that goes on takes the base as it is by now.
        embedder="recorded" if sitting else config.embedder,
        endpoint=config.embedding.settings(),
    )
    try:
        ours.require_embedder()
    except BaseException:
        ours.close()
        raise
    return ours, ours, ours if config.learn else None


def _load_kernel(problem: Problem, kernel: str | Path | None) -> Kernel:
    named = kernel is None or (isinstance(kernel, str) and kernel in problem.kernels)
    path = problem.kernel_file(kernel if isinstance(kernel, str) else None) if named else Path(str(kernel))
    if not named and not path.exists() and path.name == str(kernel) and not path.suffix:
        # A bare word that is neither a file nor a name: the problem knows what names there are.
        path = problem.kernel_file(str(kernel))
    try:
        return Kernel.load(path)
    except PlanError as error:
        raise error.as_usage_error() from None


def _open_models(
    config: Config,
    model: str | ChatCompletionClient | None,
    models: Mapping[str, str | ChatCompletionClient],
) -> dict[str, OpenedModel]:
    """A model for each agent; agents that name the same one, called the same way, share its client."""
    _require_agents(models, "give a model to")
    fallback = config.model if model is None or isinstance(model, str) else model
    opened: dict[object, OpenedModel] = {}
    chosen: dict[str, OpenedModel] = {}
    for agent in AGENTS:
        own: AgentModel = getattr(config.models, agent)
        wanted = models.get(agent) or own.model or fallback
        named = isinstance(wanted, str)
        key = (wanted, own.model_copy(update={"model": None})) if named else id(wanted)
        if key not in opened:
            settings = config.models.for_agent(agent)
            opened[key] = (
                open_model(wanted, settings) if isinstance(wanted, str) else passed_client(wanted, settings)
            )
        chosen[agent] = opened[key]
    return chosen


def _require_agents(names: Iterable[str], doing: str) -> None:
    unknown = sorted(set(names) - set(AGENTS))
    if unknown:
        raise UsageError(f"There is no agent '{unknown[0]}' to {doing}; there are {', '.join(AGENTS)}.")


def _seed(seed: int | None, sitting: int) -> int | tuple[int, int] | None:
    return seed if seed is None or not sitting else (seed, sitting)


def _check_prices(config: Config, models: Mapping[str, OpenedModel]) -> None:
    if config.limits.max_cost_usd is None:
        return
    for model in models.values():
        if not model.free and model.price is None:
            name = model.name.removeprefix("openai:")
            raise UsageError(
                f"A cost limit needs the price of model {name}, which is not in the price table for this "
                f"endpoint; add it (US dollars for a million tokens), such as "
                f"--set 'models.prices.{name}={{input=1.0, output=4.0}}', or in a file: see docs/models.md."
            )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("kernel-scientist", "autogen-agentchat", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed as a distribution"
    return versions
