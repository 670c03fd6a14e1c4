"""From a model's name to a client. A new kind of model is one module and one line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from kernel_scientist.sandbox.errors import UsageError

from ..config import ModelsConfig, Price
from ..interrupts import ModelUnavailable

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage

__all__ = [
    "BUILT_IN",
    "HIDDEN",
    "CallFault",
    "CallKey",
    "Feature",
    "Keyed",
    "OpenedModel",
    "hider",
    "open_model",
    "passed_client",
]

Feature = Literal["schema", "tools", "usage"]
"""What an endpoint may not have: answers by schema, tool calls, token counts on streams."""

HIDDEN = "[key]"
"""What stands in a record where a key or a password stood."""

# Name, or prefix with a colon, to the function that opens it.
BUILT_IN: Mapping[str, str] = {
    "offline": "kernel_scientist.agents.models.offline:open_offline",
    "openai:": "kernel_scientist.agents.models.openai:open_openai",
    "replay:": "kernel_scientist.agents.models.replay:open_replay",
}


@dataclass(frozen=True, slots=True)
class CallFault:
    """What a failed call means. `fatal` ends the session at once, `retry` is worth another try.

    `wait_s` is how long the endpoint asked to wait, where it did. `billed`: it may have cost what an answer
    costs. `lacks`: the endpoint does not have this, and the call may work without it. `too_long`: the prompt
    is larger than the model's `window` of tokens, where that was said. `over`: there are no more answers.
    `unreachable`: nobody took the call, so one that is tried in vain to the end will have no successor.
    """

    sentence: str
    retry: bool = False
    fatal: bool = False
    wait_s: float | None = None
    billed: bool = False
    lacks: Feature | None = None
    too_long: bool = False
    window: int | None = None
    over: bool = False
    unreachable: bool = False


@dataclass(frozen=True, slots=True)
class CallKey:
    """Which call of a session this is: the agent's `turn`-th in a generation of a lane that got an answer."""

    lane: int
    generation: int
    agent: str
    turn: int


class Explain(Protocol):
    """Tells what an exception of a client means."""

    def __call__(self, error: Exception) -> CallFault: ...


class Check(Protocol):
    """Finds out, before anything is written, that a model can be reached; raises `UsageError`."""

    async def __call__(self) -> None: ...


class Drop(Protocol):
    """Does without something that the endpoint turned out not to have."""

    def __call__(self, feature: Feature) -> None: ...


@runtime_checkable
class Keyed(Protocol):
    """A client whose answer depends on which call of the session it is, such as a recording."""

    async def answer_to(self, key: CallKey, messages: Sequence[LLMMessage]) -> tuple[CreateResult, str]:
        """The answer, and a remark on it for the transcript (or an empty one)."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A client with what is known about it. `secrets` must never be written down.

    `free` models cost nothing; for others an absent `price` means an unknown cost. `ours` are closed with
    the session. `context_tokens` is what the model reads, where that is known.
    """

    name: str
    client: ChatCompletionClient
    explain: Explain
    check: Check | None = None
    free: bool = False
    price: Price | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    ours: bool = True
    context_tokens: int | None = None
    drop: Drop | None = None


def open_model(name: str, config: ModelsConfig, environ: Mapping[str, str] | None = None) -> OpenedModel:
    """Open a model by name: ``offline``, ``openai:NAME``, or NAME where an endpoint is configured.

    Raises `UsageError` with the way out: an unknown name, no endpoint, no key.
    """
    variables = os.environ if environ is None else environ
    prefix, colon, rest = name.partition(":")
    if name in BUILT_IN and not colon:
        return _opener(BUILT_IN[name])(name, config, variables)
    if colon and f"{prefix}:" in BUILT_IN and rest:
        return _opener(BUILT_IN[f"{prefix}:"])(rest, config, variables)
    if not name.strip() or (colon and not rest):
        raise UsageError(
            f"'{name}' is not a model's name; use offline, openai:NAME for an endpoint's model, or "
            "replay:RUN for the replies of a recorded run."
        )
    close = get_close_matches(name, list(BUILT_IN), n=1, cutoff=0.75)
    if close:
        raise UsageError(f"There is no built-in model '{name}'; did you mean '{close[0].rstrip(':')}'?")
    if (
        config.base_url
        or variables.get("OPENAI_BASE_URL")
        or variables.get(config.api_key_env)
        or config.api_key
    ):
        return _opener(BUILT_IN["openai:"])(name, config, variables)
    raise UsageError(
        f"There is no built-in model '{name}' (there are: offline, replay:RUN), and no endpoint is set; "
        f"set {config.api_key_env} and, for a server other than OpenAI's, OPENAI_BASE_URL or models.base_url."
    )


def passed_client(client: ChatCompletionClient, config: ModelsConfig) -> OpenedModel:
    """A client that the caller made; its failures cannot be told apart, so each ends only its step."""

    def explain(error: Exception) -> CallFault:
        return CallFault(f"the model failed: {type(error).__name__}: {error}")

    name = str(getattr(client, "name", type(client).__name__))
    free = bool(getattr(client, "free", False))
    return OpenedModel(name, client, explain, free=free, price=config.prices.get(name), ours=False)


def _opener(path: str) -> Callable[[str, ModelsConfig, Mapping[str, str]], OpenedModel]:
    module, _, function = path.partition(":")
    opener: Callable[[str, ModelsConfig, Mapping[str, str]], OpenedModel] = getattr(
        import_module(module), function
    )
    return opener


def hider(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that blots `secrets` out of a text. Short ones, such as a placeholder, are left."""
    hidden = [one for one in secrets if len(one) >= 6]

    def hide(text: str) -> str:
        for one in hidden:
            text = text.replace(one, HIDDEN)
        return text

    return hide


def unavailable(name: str, fault: CallFault, tries: int) -> ModelUnavailable:
    """The exception for a call that failed for good."""
    times = f" after {tries} tries" if tries > 1 else ""
    return ModelUnavailable(f"Model {name} gave no answer{times}: {fault.sentence}")
