"""The program as another machine gets it: a zip of its rooms, named by the hash of what is in it."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..files import explained, read_regular

__all__ = ["Bundle", "bundle_files", "files_below"]

# The oldest time that the format can hold, so that the same files make the same zip.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files as one zip, and the digest that `bootstrap.content_digest` finds once they are unpacked."""

    digest: str
    blob: bytes


def files_below(folder: Path, *, most_bytes: int) -> dict[str, bytes]:
    """The files of a folder by their relative names; hidden and compiled ones are left out.

    UsageError when they hold more than `most_bytes` or cannot be read.
    """
    files: dict[str, bytes] = {}
    left = most_bytes
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "__pycache__")) for part in parts) or not path.is_file():
            continue
        with explained("read the file to be sent", path):
            left -= path.stat().st_size
            if left < 0:
                raise UsageError(
                    f"{folder}: its files have more than {most_bytes} bytes, too much to be sent to another "
                    "machine; take out what the problem does not need."
                )
            files["/".join(parts)] = read_regular(path, most_bytes)
    return files


def bundle_files(files: Mapping[str, bytes]) -> Bundle:
    """A zip of `files`, by their names in it."""
    digest = hashlib.sha256()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), files[name], zipfile.ZIP_DEFLATED)
    return Bundle(digest.hexdigest(), memory.getvalue())
