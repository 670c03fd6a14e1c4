"""The embedder that a text names, and the text that an embedder can be made from again."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.printable import printable

from .endpoint import DEFAULT_URL, EndpointEmbedder, EndpointSettings, checked_url
from .local import LocalEmbedder
from .offline import OfflineEmbedder
from .seam import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FORMS", "AbsentEmbedder", "make_embedder", "recipe"]

FORMS = "offline, openai:MODEL[@URL] or sentence-transformers:MODEL"


def make_embedder(text: str, settings: EndpointSettings | None = None, url: str | None = None) -> Embedder:
    """The embedder that `text` names (see `FORMS`); `url` is the endpoint's where `text` names none.

    Loads and asks nothing. Raises `UsageError` for another text.
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "offline" and not rest:
        return OfflineEmbedder()
    if kind == "openai" and rest:
        model, at, address = _parted(rest)
        if model and (address or not at):
            chosen = address or url or DEFAULT_URL
            return EndpointEmbedder(model, checked_url(chosen), settings or EndpointSettings())
    if kind == "sentence-transformers" and rest.strip():
        return LocalEmbedder(rest.strip())
    raise UsageError(f"There is no embedding model '{printable(text, ' ')[:80]}'; give {FORMS}.")


def _parted(text: str) -> tuple[str, str, str]:
    """Model, separator and address; the model's own name may hold the separator."""
    for scheme in ("@http://", "@https://"):
        model, at, address = text.partition(scheme)
        if at:
            return model.strip(), at, f"{scheme[1:]}{address}" if address else ""
    return text.strip(), "", ""


def recipe(embedder: Embedder) -> str | None:
    """What `make_embedder` makes the same embedder from; ``None`` for one of the caller's own."""
    if isinstance(embedder, OfflineEmbedder):
        return "offline"
    if isinstance(embedder, EndpointEmbedder):
        return f"openai:{embedder.model}@{embedder.url}"
    if isinstance(embedder, LocalEmbedder):
        return f"sentence-transformers:{embedder.place}"
    return None


@final
class AbsentEmbedder:
    """Stands for the embedder of a base that another program made with one of its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: list[str]) -> NDArray[np.float32]:  # noqa: ARG002 - the seam's argument
        raise UsageError(
            f"This knowledge base is embedded by '{printable(self.name, ' ')}', a model of the program that "
            "made it; pass that to KnowledgeBase.open, or embed all anew with "
            "'kernel-scientist knowledge rebuild --embedder offline'."
        )
