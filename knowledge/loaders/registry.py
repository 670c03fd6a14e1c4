"""Which loader reads which file, by its suffix."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from .document import LoadedDocument, LoadError

__all__ = ["is_document", "load"]

Loader = Callable[[bytes, str], LoadedDocument]

# Module → suffixes. A loader is the module's `load(raw, name)`; `name` is the file's name.
_LOADERS = {
    "markdown": (".md", ".markdown"),
    "text": (".txt", ".text"),
    "code": (
        *(".hip", ".cu", ".cuh", ".cl", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl"),
        *(".py", ".s", ".asm", ".ll", ".mlir"),
    ),
    "pdf": (".pdf",),
}
_BY_SUFFIX = {suffix: module for module, suffixes in _LOADERS.items() for suffix in suffixes}
_TEXT_NAMES = frozenset({"readme", "notes", "license", "changelog"})
_LARGEST_FILE = 100 << 20


def is_document(path: Path) -> bool:
    """Whether a loader for this name exists."""
    return _module_for(path.name) is not None


def load(path: Path) -> tuple[bytes, LoadedDocument]:
    """The file's bytes and what they hold. Raises `LoadError`, and `OSError` when it cannot be read."""
    module = _module_for(path.name)
    if module is None:
        kind = f"'{path.suffix}'" if path.suffix else "no suffix"
        raise LoadError(f"not a document type we read ({kind}); convert it to Markdown, plain text or PDF")
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise LoadError(f"too large ({size >> 20} MiB; at most {_LARGEST_FILE >> 20}); split it")
    raw = path.read_bytes()
    loader: Loader = importlib.import_module(f".{module}", __package__).load
    document = loader(raw, path.name)
    if not any(section.text.strip() for section in document.sections):
        raise LoadError("it holds no text")
    return raw, document


def _module_for(name: str) -> str | None:
    path = Path(name)
    if not path.suffix and path.name.lower() in _TEXT_NAMES:
        return "text"
    return _BY_SUFFIX.get(path.suffix.lower())
