"""Vectors from a local sentence-transformers model, by its name on the hub or by its folder."""

from __future__ import annotations

import hashlib
import importlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.printable import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LocalEmbedder"]

_PACKAGE = "sentence_transformers"
_BATCH = 32
_ENDS = 1 << 16


@final
class LocalEmbedder:
    """The model in the folder, or of the name, `model`; loaded, with its package, on the first use.

    A folder's name holds a hash of its files, so that another model put there is another embedder. Raises
    `UsageError` for what is no model, and `UnusableEnvironment` without the package.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        folder = Path(model).expanduser()
        self._folder = folder.resolve() if folder.is_dir() else None
        self.name = f"sentence-transformers:{model if self._folder is None else _named(self._folder)}"
        self._lock = threading.Lock()
        self._loaded: Any = None

    @property
    def place(self) -> str:
        """The model as it can be found again from anywhere."""
        return self.model if self._folder is None else str(self._folder)

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return self._encode(texts, "document")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Models that were trained with a prompt for questions are given it."""
        row: NDArray[np.float32] = self._encode([text], "query")[0]
        return row

    def _encode(self, texts: list[str], kind: str) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        with self._lock:
            model = self._model()
            prompts: Any = getattr(model, "prompts", None) or {}
            rows: Any = model.encode(
                texts,
                prompt=prompts.get(kind) or None,
                batch_size=_BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return np.asarray(rows, np.float32)

    def _model(self) -> Any:
        if self._loaded is None:
            try:
                package: Any = importlib.import_module(_PACKAGE)  # an extra, and slow to import
            except ImportError as error:
                raise UnusableEnvironment(
                    f"Local embedding models need another package ({error}); install it: "
                    "pip install 'kernel-scientist[sentence-transformers]'."
                ) from error
            try:
                self._loaded = package.SentenceTransformer(self.place)
            except Exception as error:  # the package raises errors of many other packages
                reason = " ".join(printable(str(error), " ").split())[:200]
                raise UsageError(
                    f"The embedding model '{printable(self.model, ' ')}' does not load "
                    f"({type(error).__name__}: {reason}); name a folder that sentence-transformers saved, or "
                    "a model that can be downloaded here."
                ) from error
        return self._loaded


def _named(folder: Path) -> str:
    """The folder's name and a hash of its files: of their names, sizes, beginnings and ends."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)} {size}\n".encode(errors="replace"))
        with path.open("rb") as file:
            digest.update(file.read(_ENDS))
            file.seek(max(0, size - _ENDS))
            digest.update(file.read(_ENDS))
    return f"{folder.name}-{digest.hexdigest()[:8]}"
