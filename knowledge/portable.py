"""A knowledge base as one portable file, and back: a zip archive that any program can read.

    knowledge.json     the format's version and the embedding models with their dimensions
    documents.jsonl    a document a line, with its passages and their citations
    vectors/N.npy      float32, the vectors of model N, a row a passage in the order of the lines
    vectors/N.json     the numbers, from 0, of the passages that have one

Bundled notes are left out: they come with the program. Importing trusts nothing in the file: what is not of
this form is refused before anything is stored, and the passages' tokens and lexical entries are made anew.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained
from kernel_scientist.sandbox.printable import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PortableChunk", "PortableDocument", "PortableSource", "read_portable", "write_portable"]

_VERSION = 1
_INDEX, _DOCUMENTS = "knowledge.json", "documents.jsonl"
_LONGEST_LINE = 256 << 20
_LARGEST_PART = 16 << 30
_Text = Annotated[str, StringConstraints(max_length=50_000_000)]
_NUMBERS = TypeAdapter(list[int])
_Name = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PortableSource(_Strict):
    """A public source that a passage cites."""

    mark: _Name
    title: _Text
    url: _Text
    looked_up: _Text | None


class PortableChunk(_Strict):
    """A passage."""

    section: _Text
    page: int | None
    text: _Text
    tokens: Annotated[int, Field(ge=0)]
    sources: list[PortableSource]


class PortableDocument(_Strict):
    """A document with its passages in order."""

    id: _Name
    source: _Name
    title: _Text
    kind: Literal["literature", "experience"]
    content_hash: _Name
    added_at: _Name
    tags: list[_Name]
    architectures: list[_Name]
    authors: list[_Name]
    year: int | None
    origin: _Text | None
    chunks: Annotated[list[PortableChunk], Field(min_length=1)]


class _Versioned(BaseModel):
    version: int


class _Index(_Strict):
    format: Literal["kernel-scientist knowledge"]
    version: int
    embedders: dict[_Name, Annotated[int, Field(ge=1, le=100_000)]]


def write_portable(
    path: Path,
    documents: Iterator[PortableDocument],
    vectors: dict[str, tuple[list[int], NDArray[np.float32]]],
) -> None:
    """Write the file, whole or not at all; `vectors` holds for each embedder passages' numbers and rows."""
    import numpy as np

    half = path.with_name(f".{path.name}.{os.getpid()}.part")
    with explained("write the export", path):
        try:
            with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
                index = {name: rows.shape[1] for name, (_, rows) in vectors.items()}
                head = _Index(format="kernel-scientist knowledge", version=_VERSION, embedders=index)
                archive.writestr(_INDEX, head.model_dump_json(indent=2))
                with archive.open(_DOCUMENTS, "w", force_zip64=True) as lines:
                    for document in documents:
                        lines.write(document.model_dump_json().encode() + b"\n")
                for i, (numbers, rows) in enumerate(vectors.values()):
                    archive.writestr(f"vectors/{i}.json", json.dumps(numbers))
                    with archive.open(f"vectors/{i}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, rows.astype("<f4"), allow_pickle=False)
            with half.open("rb") as written:
                os.fsync(written.fileno())
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)


def read_portable(
    path: Path,
) -> tuple[list[PortableDocument], dict[str, tuple[list[int], NDArray[np.float32]]]]:
    """Documents and, for each embedder, passages' numbers and unit rows. Raises `UsageError`."""
    with explained("read the export", path), path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if sum(part.file_size for part in archive.infolist()) > _LARGEST_PART:
                    raise ValueError(f"it unpacks to more than {_LARGEST_PART >> 30} GiB")
                return _read(archive)
        except (ValidationError, ValueError, KeyError, EOFError, zipfile.BadZipFile, RecursionError) as error:
            raise UsageError(
                f"{printable(str(path), ' ')} is not a whole export of a knowledge base ({_short(error)}); "
                "make it with 'kernel-scientist knowledge export'."
            ) from error


def _read(
    archive: zipfile.ZipFile,
) -> tuple[list[PortableDocument], dict[str, tuple[list[int], NDArray[np.float32]]]]:
    raw = archive.read(_INDEX)
    version = _Versioned.model_validate_json(raw).version
    if version > _VERSION:
        raise ValueError(f"it is of version {version}, and this program reads {_VERSION}; update it")
    index = _Index.model_validate_json(raw)
    with archive.open(_DOCUMENTS) as lines:
        documents = [PortableDocument.model_validate_json(line) for line in _lines(lines)]
    chunks = sum(len(document.chunks) for document in documents)
    found: dict[str, tuple[list[int], NDArray[np.float32]]] = {}
    for i, (name, dimensions) in enumerate(index.embedders.items()):
        numbers = _NUMBERS.validate_json(archive.read(f"vectors/{i}.json"), strict=True)
        found[name] = _vectors(archive.read(f"vectors/{i}.npy"), numbers, dimensions, chunks)
    return documents, found


def _vectors(
    raw: bytes, numbers: list[int], dimensions: int, count: int
) -> tuple[list[int], NDArray[np.float32]]:
    import numpy as np

    rows: NDArray[np.float32] = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    if not all(0 <= number < count for number in numbers):
        raise ValueError("a vector is of no passage")
    if rows.dtype != np.dtype("<f4") or rows.shape != (len(numbers), dimensions):
        raise ValueError("the vectors are not of the shape they should have")
    if len(numbers) and not np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-2):
        raise ValueError("a vector does not have length 1")
    return numbers, rows


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE):
        if not line.endswith(b"\n"):
            raise ValueError("a line is cut off or too long")
        yield line


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return printable(f"{where}: {first['msg']}", " ")[:200]
    return printable(str(error) or type(error).__name__, " ")[:200]
