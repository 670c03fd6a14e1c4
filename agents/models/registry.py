"""From a model's name to a client. A new kind of model is one module and one line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from kernel_scientist.sandbox.errors import UsageError

from ..config import ModelsConfig, Price
from ..interrupts import ModelUnavailable

if TYPE_CHECKING:
    from autogen_core.models import ChatCompletionClient

__all__ = ["BUILT_IN", "CallFault", "OpenedModel", "open_model", "passed_client"]

# Name, or prefix with a colon, to the function that opens it.
BUILT_IN: Mapping[str, str] = {
    "offline": "kernel_scientist.agents.models.offline:open_offline",
    "openai:": "kernel_scientist.agents.models.openai:open_openai",
}


@dataclass(frozen=True, slots=True)
class CallFault:
    """What a failed call means. `fatal` ends the session at once, `retry` is worth another try.

    `wait_s` is how long the endpoint asked to wait, where it did.
    """

    sentence: str
    retry: bool = False
    fatal: bool = False
    wait_s: float | None = None


class Explain(Protocol):
    """Tells what an exception of a client means."""

    def __call__(self, error: Exception) -> CallFault: ...


class Check(Protocol):
    """Finds out, before anything is written, that a model can be reached; raises `UsageError`."""

    async def __call__(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A client with what is known about it. `secrets` must never be written down.

    `free` models cost nothing; for others an absent `price` means an unknown cost. `ours` are closed with
    the session.
    """

    name: str
    client: ChatCompletionClient
    explain: Explain
    check: Check | None = None
    free: bool = False
    price: Price | None = None
    secrets: tuple[str, ...] = ()
    ours: bool = True


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
            f"'{name}' is not a model's name; use offline, or openai:NAME for an endpoint's model."
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
        f"There is no built-in model '{name}' (there is: offline), and no endpoint is configured; set "
        f"{config.api_key_env} and, for a server other than OpenAI's, OPENAI_BASE_URL or models.base_url."
    )


def passed_client(client: ChatCompletionClient) -> OpenedModel:
    """A client that the caller made; its failures cannot be told apart, so each ends only its step."""

    def explain(error: Exception) -> CallFault:
        return CallFault(f"the model failed: {type(error).__name__}: {error}")

    name = str(getattr(client, "name", type(client).__name__))
    return OpenedModel(name, client, explain, free=bool(getattr(client, "free", False)), ours=False)


def _opener(path: str) -> Callable[[str, ModelsConfig, Mapping[str, str]], OpenedModel]:
    module, _, function = path.partition(":")
    opener: Callable[[str, ModelsConfig, Mapping[str, str]], OpenedModel] = getattr(
        import_module(module), function
    )
    return opener


def unavailable(name: str, fault: CallFault, tries: int) -> ModelUnavailable:
    """The exception for a call that failed for good."""
    times = f" after {tries} tries" if tries > 1 else ""
    return ModelUnavailable(f"Model {name} gave no answer{times}: {fault.sentence}")
