"""Files that are whole or absent, locks that say who holds them, and where this program keeps its data."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import final

from .errors import KernelScientistError, SandboxError, UnusableEnvironment, UsageError

__all__ = [
    "FileLock",
    "atomic_write",
    "cache_home",
    "data_home",
    "explain_os_error",
    "explained",
    "is_free",
    "is_own",
    "open_regular",
    "read_regular",
]

_APPLICATION = "kernel-scientist"
_HOME_VARIABLE = "KERNEL_SCIENTIST_HOME"


def data_home() -> Path:
    """The folder for what must last: ``KERNEL_SCIENTIST_HOME``, else the XDG data folder. Not created."""
    return _home("XDG_DATA_HOME", ".local/share", "")


def cache_home() -> Path:
    """The folder for what can be made again: ``KERNEL_SCIENTIST_HOME/cache``, else XDG's. Not created."""
    return _home("XDG_CACHE_HOME", ".cache", "cache")


def _home(variable: str, fallback: str, below: str) -> Path:
    own = os.environ.get(_HOME_VARIABLE)
    if own:
        return Path(own).expanduser().absolute() / below
    xdg = os.environ.get(variable)
    # The XDG specification says that a relative path there is to be ignored.
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / _APPLICATION
    try:
        return Path.home() / fallback / _APPLICATION
    except RuntimeError:
        raise UnusableEnvironment(
            f"This user has no home folder; set {_HOME_VARIABLE} to a folder that may be written."
        ) from None


def explain_os_error(error: OSError, doing: str, path: Path | None = None) -> KernelScientistError:
    """The sentence for `error`, met while `doing` something ("write the run") at `path`.

    A full disk is the machine's fault (`UnusableEnvironment`), and so is whatever is wrong with the program's
    own folders; another place that is read-only, forbidden, missing or of the wrong kind is the user's choice
    of place (`UsageError`).
    """
    shown = path if path is not None else (error.filename or "the given place")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnusableEnvironment(
            f"Cannot {doing}: no space is left at {shown}; free some, or choose another place."
        )
    # `read_regular` says in its own words that a file is too large to be read.
    if error.errno == errno.EFBIG and error.strerror == os.strerror(errno.EFBIG):
        return UnusableEnvironment(
            f"Cannot {doing}: {shown} would be larger than files may be here; raise that limit (ulimit -f)."
        )
    reasons = {
        errno.EROFS: "the file system is read-only; choose another place",
        errno.EACCES: "permission is denied; choose another place, or change its permissions",
        errno.EPERM: "permission is denied; choose another place, or change its permissions",
        errno.ENOENT: _missing(Path(str(shown))),
        errno.EISDIR: "it is a folder, not a file",
        errno.ENOTDIR: "a part of the path is not a folder",
        errno.EEXIST: "something of that name is already there",
        errno.ENAMETOOLONG: "the name is too long",
    }
    reason = reasons.get(error.errno or 0, error.strerror or type(error).__name__)
    if is_own(Path(str(shown))):
        reason = reason.partition(";")[0]
        return UnusableEnvironment(
            f"Cannot {doing} at {shown}: {reason}; set {_HOME_VARIABLE} to a folder that may be written."
        )
    return UsageError(f"Cannot {doing} at {shown}: {reason}.")


def _missing(path: Path) -> str:
    """What is not there: the place itself, or the folder that it would be in."""
    folder = path.parent
    if os.path.lexists(folder):
        return "it does not exist"
    return f"the folder {folder} does not exist; make it, or choose another place"


def is_own(path: Path) -> bool:
    """Whether `path` is in a folder that the program chose, where the user named none."""
    try:
        homes = (data_home(), cache_home())
    except UnusableEnvironment:
        return False
    return any(path.absolute().is_relative_to(home) for home in homes)


@contextlib.contextmanager
def explained(doing: str, path: Path | None = None) -> Generator[None]:
    """Turn any `OSError` of the block into the sentence of `explain_os_error`."""
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, doing, path) from error


def open_regular(path: Path) -> int:
    """A handle for reading the regular file `path`; never waits.

    Raises `OSError`, whose `strerror` says so when the file is a folder, a pipe, a device or the like.
    """
    # Without O_NONBLOCK the opening of a pipe waits for somebody who writes into it.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: Path, most: int) -> bytes:
    """The bytes of the regular file `path`; never waits, and never reads more than `most` bytes.

    Raises the `OSError` of the failing step; its `strerror` says so when the file is a pipe, a device or the
    like (EINVAL), or has more than `most` bytes (EFBIG).
    """
    handle = open_regular(path)
    try:
        status = os.fstat(handle)
        # A file may grow, or not tell its size, as those of /proc do.
        data = b""
        if status.st_size <= most:
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(most + 1)
        size = max(len(data), status.st_size)
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes or more, and may have {most}", str(path))
        return data
    finally:
        os.close(handle)


def atomic_write(path: Path, data: bytes | str) -> None:
    """Make `path` hold `data` (text as UTF-8), wholly or not at all; its folder must exist.

    Raises the `OSError` of the failing step after removing the temporary file.
    """
    raw = data.encode() if isinstance(data, str) else data
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's umask, read without changing it (setting and restoring it is not thread-safe)."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o022


@final
class FileLock:
    """An exclusive lock on `path`, between threads as well as processes; freed when its holder dies.

    Raises `SandboxError` naming the holder when it is not got within `timeout_s` seconds.
    """

    __slots__ = ("_handle", "path", "purpose", "timeout_s")

    def __init__(self, path: Path, *, timeout_s: float = 60.0, purpose: str = "") -> None:
        self.path = path
        self.timeout_s = timeout_s
        self.purpose = purpose
        self._handle: int | None = None

    def __enter__(self) -> FileLock:
        assert self._handle is None, "a FileLock is not re-entrant"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while (handle := self._open()) is None:
            pass
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} {self.purpose}".rstrip().encode(), 0)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            # The file stays here; a holder that removes it does so before this, and who waits notices.
            os.ftruncate(handle, 0)
            os.close(handle)

    def _open(self) -> int | None:
        """The locked file; ``None`` when its last holder removed it while this one waited."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._wait(handle)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), self.path.stat()):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return None

    def _wait(self, handle: int) -> None:
        deadline = time.monotonic() + self.timeout_s
        pause = 0.001
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(handle, 200, 0).decode(errors="replace") or "another process"
                    raise SandboxError(
                        f"{self.path} has been locked by {holder} for more than {self.timeout_s:g} s; "
                        "wait for it, or stop it."
                    ) from None
                time.sleep(pause)
                pause = min(0.05, pause * 2)


def is_free(path: Path) -> bool:
    """Whether there is a lock file at `path` that nobody holds: its holder was killed. Never waits."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
