"""A store and the model that it is embedded by: recorded, compared, used, and changed for another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.printable import printable

from .embedding import (
    AbsentEmbedder,
    Embedder,
    EndpointSettings,
    OfflineEmbedder,
    QueryEmbedder,
    make_embedder,
    recipe,
)
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "RECORDED",
    "StoreEmbedder",
    "choose_embedder",
    "embed_missing",
    "forget_if_changed",
    "require_same",
]

RECORDED = "recorded"
"""Names the embedder that the base was made with, whatever the environment says."""
_VARIABLE = "KERNEL_SCIENTIST_EMBEDDER"
_URL_VARIABLE = "OPENAI_BASE_URL"
_NAME, _RECIPE = "embedder", "embedder_recipe"
_AT_ONCE = 64
# Vectors of one model for one text; int8 kernels differ a little from one CPU to another.
_SAME_MODEL = 0.95


@dataclass(frozen=True, slots=True)
class _Made:
    """What the store was embedded by; without a recipe, by a model of the caller's own."""

    name: str
    recipe: str | None


@final
class StoreEmbedder:
    """An embedder as its store uses it: vectors of another length are refused, and the time is counted."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.bare = embedder
        self._store = store
        self._dimensions: int | None = None
        self.name = embedder.name
        self.recipe = recipe(embedder)
        self.seconds = 0.0
        self.failed = False

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        began = time.perf_counter()
        try:
            rows = self.bare.embed(list(texts))
        finally:
            self.seconds += time.perf_counter() - began
        if len(rows):
            self._require_length(rows.shape[1])
        return rows

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question, which some models read in another way than a passage.

        `failed` says afterwards whether an error was of the model's.
        """
        self.failed = True
        bare = self.bare
        row: NDArray[np.float32] = (
            bare.embed_query(text) if isinstance(bare, QueryEmbedder) else bare.embed([text])[0]
        )
        self.failed = False
        self._require_length(len(row))
        return row

    def forget_length(self) -> None:
        """Take whatever length comes next: the store's vectors of this model are gone."""
        self._dimensions = None

    def _require_length(self, length: int) -> None:
        if self._dimensions is None:
            self._dimensions = self._store.vectors.dimensions(self.name)
        if self._dimensions is not None and length != self._dimensions:
            raise UsageError(
                f"The embedding model '{printable(self.name, ' ')}' gives vectors of {length} numbers, and "
                f"in {self._store.path.parent} they have {self._dimensions}: another model has taken its "
                "name; embed all anew with 'kernel-scientist knowledge rebuild'."
            )


def choose_embedder(
    store: Store,
    wanted: Embedder | str | None,
    endpoint: EndpointSettings | None,
    environ: Mapping[str, str] | None = None,
) -> Embedder:
    """The embedder itself, by its text (see `make_embedder`), by the environment, or that of the store."""
    environ = os.environ if environ is None else environ
    if wanted is not None and not isinstance(wanted, str):
        return wanted
    made = _made(store)
    text = environ.get(_VARIABLE, "").strip() or None if wanted is None else wanted
    if text is not None and text != RECORDED:
        url = environ.get(_URL_VARIABLE, "").strip() or None
        chosen = make_embedder(text, endpoint, url)
        known = make_embedder(made.recipe, endpoint) if made and made.recipe else chosen
        # A model without an address stays where the store found it last.
        stays = known.name == chosen.name and url is None and "@http" not in text
        return known if stays else chosen
    if made is None:
        return OfflineEmbedder()
    return make_embedder(made.recipe, endpoint) if made.recipe else AbsentEmbedder(made.name)


def require_same(store: Store, embedder: StoreEmbedder) -> None:
    """Raise `UsageError` when the store is embedded by another model.

    A newer version of the offline model is no other one: it costs nothing, and embeds all anew by itself.
    """
    made = _made(store)
    if made is None or made.name == embedder.name or not store.counts(made.name)[2]:
        return
    if made.recipe is not None and made.recipe == embedder.recipe == "offline":
        return
    raise UsageError(
        f"The knowledge base at {store.path.parent} is embedded by '{printable(made.name, ' ')}', and "
        f"'{printable(embedder.name, ' ')}' was chosen; leave the choice out, or embed all anew with "
        f"'kernel-scientist knowledge rebuild --embedder {embedder.recipe or 'NAME'}'."
    )


def _record(store: Store, embedder: StoreEmbedder) -> None:
    """Write down that the store is embedded by `embedder`."""
    if _made(store) != _Made(embedder.name, embedder.recipe):
        with store.together():
            store.set_meta(_NAME, embedder.name)
            store.set_meta(_RECIPE, embedder.recipe or "")


def embed_missing(
    store: Store, embedder: StoreEmbedder, progress: Callable[[int, int], None] | None = None
) -> None:
    """Embed the chunks that `embedder` has not embedded, and record that they are its; what is done stays."""
    missing = store.vectors.missing(embedder.name)
    for start in range(0, len(missing), _AT_ONCE):
        some = missing[start : start + _AT_ONCE]
        rows = embedder.embed([text for _, text in some])
        store.vectors.add(embedder.name, [number for number, _ in some], rows)
        if progress is not None:
            progress(start + len(some), len(missing))
    _record(store, embedder)


def forget_if_changed(store: Store, embedder: Embedder) -> bool:
    """Forget the vectors of a model that no longer gives them: another one has taken its name."""
    import numpy as np

    found = store.vectors.example(embedder.name)
    if found is None:
        return False
    text, old = found
    new = embedder.embed([text])[0]
    if new.shape == old.shape and float(np.dot(new, old)) >= _SAME_MODEL:
        return False
    store.vectors.forget(embedder.name)
    return True


def _made(store: Store) -> _Made | None:
    name = store.meta(_NAME)
    return None if name is None else _Made(name, store.meta(_RECIPE) or None)
