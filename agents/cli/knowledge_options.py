"""``--chroma`` and ``--embedder``: the parts of the knowledge base, for commands that open it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .output import remark

if TYPE_CHECKING:
    from kernel_scientist.knowledge import KnowledgeBase

__all__ = ["FIRST_USE", "chroma_option", "embedder_option", "flags", "is_first_use", "open_knowledge"]

FIRST_USE = "reading the bundled library into the knowledge base, once"
_KEY = "kernel_scientist.{}"
_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def _option(name: str, metavar: str, help: str) -> Callable[[_Callable], _Callable]:
    """An option whose value `flags` returns while the command runs."""

    def remember(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_KEY.format(name)] = value

    return click.option(f"--{name}", metavar=metavar, expose_value=False, callback=remember, help=help)


chroma_option = _option(
    "chroma",
    "URL",
    "Keep the vector index on the Chroma server at this address, such as http://localhost:8000.",
)
embedder_option = _option(
    "embedder",
    "NAME",
    "The embedding model: offline, openai:MODEL[@URL] or sentence-transformers:MODEL.  "
    "[default: the one that the knowledge base was made with]",
)


def flags() -> Mapping[str, str | None]:
    """What the two options said, as the configuration takes it."""
    meta = click.get_current_context().meta
    return {name: meta.get(_KEY.format(name)) for name in ("chroma", "embedder")}


def open_knowledge(
    *,
    recorded: bool = False,
    reembed: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> KnowledgeBase:
    """The user's knowledge base; says so when it has to be made first, which takes a while.

    `recorded` is for commands that embed nothing: whatever model is chosen, they can do with the base's own.
    """
    from kernel_scientist.agents.config import load_config
    from kernel_scientist.knowledge import KnowledgeBase

    config = load_config(flags=flags())
    first = is_first_use()
    if first:
        remark(f"{FIRST_USE} ...", "dim")
    return KnowledgeBase.open(
        chroma=config.chroma,
        embedder="recorded" if recorded and not first else config.embedder,
        endpoint=config.embedding.settings(),
        reembed=reembed,
        progress=progress,
    )


def is_first_use() -> bool:
    """Whether the knowledge base is still to be made from the bundled library."""
    from kernel_scientist.sandbox.files import data_home

    return not (data_home() / "knowledge").exists()
