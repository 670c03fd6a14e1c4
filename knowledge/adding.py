"""Files and folders into the store, one by one; a bad one never stops the others."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kernel_scientist.sandbox.errors import KernelScientistError

from .chunking import chunk, embedded_text
from .embedding import Embedder
from .loaders import LoadError, load
from .records import AddItem, AddProgress
from .store import Store

__all__ = ["add_file", "add_sources", "put_file"]

# Part of the content's hash: a new way of cutting makes every document a changed one.
_CUTTING = b"1"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "build", "dist"})


def add_sources(
    store: Store,
    embedder: Embedder,
    sources: Sequence[str | Path],
    tags: tuple[str, ...],
    progress: Callable[[AddProgress], None] | None,
) -> list[AddItem]:
    """Add each file of `sources`, folders with all below them. An item that has been reported is on disk."""
    found = [entry for source in sources for entry in _files(source)]
    items: list[AddItem] = []
    for entry in found:
        if isinstance(entry, AddItem):
            item = entry
        else:
            item = add_file(store, embedder, entry, source=str(entry.absolute()), name=entry.stem, tags=tags)
        items.append(item)
        if progress is not None:
            progress(AddProgress(item, len(items), len(found)))
    return items


def add_file(
    store: Store,
    embedder: Embedder,
    path: Path,
    *,
    source: str,
    name: str,
    tags: tuple[str, ...] = (),
    bundled: bool = False,
) -> AddItem:
    """Add one file under the identity `source`; what goes wrong with it is in the item."""
    try:
        return put_file(store, embedder, path, source=source, name=name, tags=tags, bundled=bundled)
    except LoadError as error:
        return AddItem(source, "failed", str(error))
    except OSError as error:
        return AddItem(
            source, "failed", f"it cannot be read: {os.strerror(error.errno or errno.EIO).lower()}"
        )
    except KernelScientistError as error:
        return AddItem(source, "failed", str(error))


def put_file(
    store: Store,
    embedder: Embedder,
    path: Path,
    *,
    source: str,
    name: str,
    tags: tuple[str, ...] = (),
    bundled: bool = False,
) -> AddItem:
    """`add_file`, but what goes wrong is raised: `LoadError`, `OSError`, `KernelScientistError`."""
    raw, document = load(path)
    digest = hashlib.sha256(_CUTTING + raw).hexdigest()
    same = _unchanged(store, source, digest, tags)
    if same is not None:
        return same
    chunks = chunk(document)
    vectors = embedder.embed([embedded_text(document.title, piece) for piece in chunks])
    status, document_id = store.put(
        source,
        document,
        chunks,
        content_hash=digest,
        name=name,
        tags=tags,
        bundled=bundled,
        embedder=embedder.name,
        vectors=vectors,
    )
    return AddItem(source, status, "", len(chunks), document_id)


def _unchanged(store: Store, source: str, digest: str, tags: tuple[str, ...]) -> AddItem | None:
    """The item for a file whose content is there already: its own or, when it is new, another's."""
    own = store.documents("source = ?", source)
    same = own or store.documents("content_hash = ?", digest)
    if not same or store.content_hash(same[0].id) != digest:
        return None
    document = same[0]
    missing = tuple(tag for tag in tags if tag not in document.tags)
    if missing:
        store.retag(document.id, (*document.tags, *missing))
    reason = "" if own else f"its content is that of {document.source}"
    return AddItem(source, "unchanged", reason, document.chunks, document.id)


def _files(source: str | Path) -> Iterator[Path | AddItem]:
    """The files of a source in order, or the item that says why there are none."""
    text = str(source)
    if "://" in text:
        yield AddItem(text, "failed", "addresses are not fetched; download it and add the file")
        return
    try:
        path = Path(source).expanduser().resolve()
        if path.is_dir():
            yield from _below(path)
        elif path.is_file():
            yield path
        elif path.exists():
            yield AddItem(text, "failed", "it is neither a file nor a folder")
        else:
            yield AddItem(text, "failed", "there is no such file or folder")
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # a loop of links, an unknown ~user, a null character
        yield AddItem(text, "failed", f"it cannot be found: {error}")


def _below(folder: Path) -> Iterator[Path | AddItem]:
    """All files below a folder but hidden ones and those a build leaves."""
    problems: list[OSError] = []
    found = False
    for parent, folders, names in os.walk(folder, onerror=problems.append):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        )
        for name in sorted(names):
            if not name.startswith("."):
                found = True
                yield Path(parent) / name
    for problem in problems:
        found = True
        yield AddItem(
            str(problem.filename), "failed", f"it cannot be read: {(problem.strerror or 'unknown').lower()}"
        )
    if not found:
        yield AddItem(str(folder), "failed", "the folder holds no files")
