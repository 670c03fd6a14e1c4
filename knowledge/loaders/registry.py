"""Which loader reads which file, by its suffix."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Callable
from pathlib import Path

from kernel_scientist.sandbox.files import read_regular

from .document import LoadedDocument, LoadError

__all__ = ["is_document", "load", "parse", "read_file"]

Loader = Callable[[bytes, str], LoadedDocument]

# Module → suffixes. A loader is the module's `load(raw, name)`; `name` is the file's name.
_LOADERS = {
    "markdown": (".md", ".markdown"),
    "text": (".txt", ".text"),
    "code": (
        *(".hip", ".cu", ".cuh", ".cl", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl"),
        *(".py", ".s", ".asm", ".ll", ".mlir"),
    ),
    "html": (".html", ".htm", ".xhtml"),
    "notebook": (".ipynb",),
    "pdf": (".pdf",),
    "restructuredtext": (".rst", ".rest"),
}
_BY_SUFFIX = {suffix: module for module, suffixes in _LOADERS.items() for suffix in suffixes}
_TEXT_NAMES = frozenset({"readme", "notes", "license", "changelog"})
_LARGEST_FILE = 100 << 20


def is_document(suffix: str) -> bool:
    """Whether a loader for files of this suffix (".pdf") exists."""
    return suffix.lower() in _BY_SUFFIX


def load(path: Path) -> tuple[bytes, LoadedDocument]:
    """The file's bytes and what they hold. Raises `LoadError`, and `OSError` when it cannot be read."""
    raw = read_file(path)
    return raw, parse(raw, path.name)


def read_file(path: Path) -> bytes:
    """The bytes of a file that a loader may read. Raises `LoadError` and `OSError`."""
    _loader_for(path.name)
    try:
        return read_regular(path, _LARGEST_FILE)
    except OSError as error:
        if error.errno == errno.EFBIG:
            size = path.stat().st_size
            raise LoadError(
                f"too large ({size >> 20} MiB; at most {_LARGEST_FILE >> 20}); split it"
            ) from None
        raise


def parse(raw: bytes, name: str) -> LoadedDocument:
    """What the bytes of a file of this name hold. Raises `LoadError`."""
    loader: Loader = importlib.import_module(f".{_loader_for(name)}", __package__).load
    try:
        document = loader(raw, name)
    except (RecursionError, MemoryError) as error:
        raise LoadError(f"it is nested too deep or too large to be read ({type(error).__name__})") from None
    except LoadError:
        raise
    except Exception as error:  # whatever a file does to its reader, the others of its batch go on
        raise LoadError(f"it cannot be read ({type(error).__name__}: {str(error)[:120]})") from error
    if not any(section.text.strip() for section in document.sections):
        raise LoadError("it holds no text")
    return document


def _loader_for(name: str) -> str:
    module = _module_for(name)
    if module is None:
        suffix = Path(name).suffix
        kind = f"'{suffix}'" if suffix else "no suffix"
        raise LoadError(f"not a document type we read ({kind}); convert it to Markdown, plain text or PDF")
    return module


def _module_for(name: str) -> str | None:
    path = Path(name)
    if not path.suffix and path.name.lower() in _TEXT_NAMES:
        return "text"
    return _BY_SUFFIX.get(path.suffix.lower())
