"""What runs on the other machine: sent there as text, so it needs Python's own library and nothing else.

It says what the machine has, unpacks the program into the cache folder, makes a virtual environment when it
is asked to, and hands over to the program. Each frame is a line with two numbers, the bytes of a JSON object
and of what follows it, then these.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["MARK", "content_digest", "encode_frame", "frame_sizes", "remote_home", "take_files"]

MARK = "kernel-scientist-speaks"
"""With a nonce behind it, the line before the first frame: a shell's greeting may come earlier."""

_HEADER_BYTES = 32
_MOST_BYTES = 1 << 28
_UNUSED_S = 30 * 86400.0
_INSTALL_TIMEOUT_S = 900.0

Message = dict[str, Any]


class _Refusal(Exception):  # noqa: N818 - it is the other end's to raise
    """A sentence for the user at the other end."""


def encode_frame(message: Mapping[str, Any], blob: bytes = b"") -> bytes:
    """One frame."""
    text = json.dumps(message, allow_nan=False).encode()
    return b"%d %d\n%s%s" % (len(text), len(blob), text, blob)


def frame_sizes(header: bytes) -> tuple[int, int]:
    """The two sizes that a frame's first line announces; ValueError when it is no such line."""
    match = re.fullmatch(rb"([0-9]{1,9}) ([0-9]{1,9})\n", header)
    if match is None:
        raise ValueError("not the first line of a frame")
    return int(match[1]), int(match[2])


def read_frame(source: BinaryIO) -> tuple[Message, bytes] | None:
    """The next frame and its blob; ``None`` at the end of `source`, also within a frame."""
    header = source.readline(_HEADER_BYTES)
    if not header.endswith(b"\n"):
        return None
    text_bytes, blob_bytes = frame_sizes(header)
    if max(text_bytes, blob_bytes) > _MOST_BYTES:
        raise ValueError("a frame is too large")
    data = source.read(text_bytes + blob_bytes)
    if len(data) < text_bytes + blob_bytes:
        return None
    return json.loads(data[:text_bytes]), data[text_bytes:]


def remote_home() -> Path:
    """The folder on the far machine for everything put there."""
    own = os.environ.get("KERNEL_SCIENTIST_HOME")
    if own:
        return Path(own).expanduser().absolute() / "cache/remote"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = xdg if xdg.is_absolute() else Path("~/.cache").expanduser()
    return base / "kernel-scientist/remote"


def content_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of a folder's files, compiled Python excepted."""
    digest = hashlib.sha256()
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    for name in names:
        digest.update(name.encode() + b"\0" + hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def take_files(blob: bytes, digest: str, folder: Path) -> None:
    """Make `folder` hold the files of the zip `blob`, wholly or not at all; ValueError for another digest."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for item in archive.infolist():
                # ZipFile.extract drops drive letters, roots and ".." from names.
                archive.extract(item, staging)
        if content_digest(staging) != digest:
            raise ValueError("what arrived is not what was sent")
        if folder.exists():
            shutil.rmtree(folder)
        try:
            staging.rename(folder)
        except OSError:
            # Another session put the same there meanwhile.
            if content_digest(folder) != digest:
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def holds(folder: Path, digest: str) -> bool:
    """Whether `folder` has exactly the files of that digest; it is then marked as used now."""
    if not folder.is_dir() or content_digest(folder) != digest:
        return False
    os.utime(folder)
    return True


def forget_unused(parent: Path) -> None:
    """Remove what nobody has used for a month."""
    for folder in parent.iterdir() if parent.is_dir() else ():
        if time.time() - folder.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _missing(modules: Mapping[str, str]) -> list[str]:
    """The requirements, such as ``numpy>=1.26``, that this Python does not meet."""
    return [requirement for module, requirement in modules.items() if not _met(module, requirement)]


def _met(module: str, requirement: str) -> bool:
    if importlib.util.find_spec(module) is None:
        return False
    name, _, least = requirement.partition(">=")
    try:
        there = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return True  # it can be imported, and does not say its version
    return not least or _numbers(there) >= _numbers(least)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]


class _Host:
    """Answers the client's questions until it is asked to hand over."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._answers: dict[str, Callable[[Message, bytes], Message]] = {
            "look": self._look,
            "unpack": self._unpack,
            "install": self._install,
        }

    def answer_all(self) -> Message | None:
        """The request to serve, or ``None`` when the client has gone."""
        while (frame := read_frame(self._source)) is not None:
            request, blob = frame
            if request["do"] == "serve":
                return request
            try:
                reply = self._answers[request["do"]](request, blob)
            except _Refusal as error:
                reply = {"error": str(error)}
            except OSError as error:
                reply = {"error": f"{error.strerror or error} ({error.filename or remote_home()})"}
            except ValueError as error:
                reply = {"error": str(error)}
            self._send(reply)
        return None

    def _send(self, message: Message) -> None:
        self._sink.write(encode_frame(message))
        self._sink.flush()

    def _look(self, request: Message, _blob: bytes) -> Message:
        return {
            "python": platform.python_version(),
            "executable": sys.executable,
            "system": platform.system(),
            "machine": platform.machine(),
            "home": str(remote_home()),
            "deployed": holds(program_folder(request["digest"]), request["digest"]),
            "missing": _missing(request["modules"]),
        }

    def _unpack(self, request: Message, blob: bytes) -> Message:
        folder = program_folder(request["digest"])
        forget_unused(folder.parent)
        take_files(blob, request["digest"], folder)
        return {}

    def _install(self, request: Message, _blob: bytes) -> Message:
        folder = remote_home() / "venv"
        folder.parent.mkdir(parents=True, exist_ok=True)
        _call([sys.executable, "-m", "venv", "--clear", str(folder)], "make a virtual environment")
        python = str(folder / "bin/python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q"]
        try:
            _call([*pip, *request["requirements"]], "install the packages with pip")
        except _Refusal:
            # It would be chosen the next time, and lack what it is for.
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return {"executable": python}


def program_folder(digest: str) -> Path:
    """Where the program of that digest lies."""
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError("not a digest")
    return remote_home() / "program" / digest


def _call(command: list[str], doing: str) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_INSTALL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise _Refusal(f"cannot {doing}: it took more than {_INSTALL_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        said = " ".join(lines[-3:]) or f"exit status {done.returncode}"
        raise _Refusal(f"cannot {doing}: {said}")


def main(nonce: str) -> None:
    """Speak to the client on the standard streams until it leaves."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What anything prints is for people: stdout carries frames only.
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    sink.write(f"\n{MARK} {nonce}\n".encode())
    sink.flush()
    request = _Host(source, sink).answer_all()
    if request is not None:
        sys.path.insert(0, str(program_folder(request["digest"])))
        server = importlib.import_module("kernel_scientist.tools.remote.server")
        server.serve(source, sink, str(program_folder(request["digest"])))
