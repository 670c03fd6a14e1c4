"""The command that starts the worker process, and the environment in which it sees one device."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["FOLDER", "python_folders", "visible_token", "worker_argv", "worker_environment"]

FOLDER = Path(__file__).parent
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from hip_worker.main import main; "
    "sys.exit(main(sys.argv[2:]))"
)
# What selects devices: ROCr's own variable, then HIP's, which counts among those that are left.
_ROCR = "ROCR_VISIBLE_DEVICES"
_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
# What a site may need for ROCm to work at all; nothing of it changes what a kernel computes.
_KEPT = ("HSA_ENABLE_SDMA", "HSA_OVERRIDE_GFX_VERSION", "HSA_NO_SCRATCH_RECLAIM", "AMD_LOG_LEVEL")


def worker_argv(arguments: Sequence[str]) -> list[str]:
    """Isolated from the user's environment, without site packages, writing no bytecode."""
    return [os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", _START, str(FOLDER), *arguments]


def python_folders() -> list[Path]:
    """What of this machine the interpreter needs to start."""
    return [Path(sys.base_prefix).resolve(), Path(os.path.realpath(sys.executable)).parent]


def worker_environment(library: Path, token: str | None = None) -> dict[str, str]:
    """The worker's whole environment. With a `token` it sees that device alone, as its number 0."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    searched = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment |= {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LD_LIBRARY_PATH": ":".join(searched),
        # Without retry on page faults a kernel cannot touch host memory that was not given to the device.
        "HSA_XNACK": "0",
    }
    if token is not None:
        return environment | {_ROCR: token}
    chosen = {name: os.environ[name] for name in (_ROCR, *_HIP) if name in os.environ}
    return environment | chosen


def visible_token(index: int) -> str:
    """What selects, as ROCR_VISIBLE_DEVICES, the device that is number `index` in this environment."""
    hip = next((os.environ[name] for name in _HIP if os.environ.get(name)), "")
    token = _nth(hip, index) if hip else str(index)
    rocr = os.environ.get(_ROCR, "")
    # A name (GPU-...) selects whatever else is visible; a number counts among what ROCr shows.
    return _nth(rocr, int(token)) if rocr and token.isdigit() else token


def _nth(listed: str, index: int) -> str:
    return [part.strip() for part in listed.split(",")][index]
