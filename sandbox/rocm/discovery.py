"""Which AMD GPUs this machine has for us: the ROCm runtime library, and what it says of its devices.

The library is never loaded into this process: it starts threads and does not survive a fork.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UnusableEnvironment, UsageError
from ..processes import run
from .command import visible_token, worker_argv, worker_environment
from .hip_worker.main import MARK

__all__ = ["LIBRARY_VARIABLE", "RocmDevice", "answers", "ask", "devices", "find_runtime", "require_runtime"]

LIBRARY_VARIABLE = "KERNEL_SCIENTIST_HIP_LIBRARY"
_NAME = "libamdhip64.so"
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class RocmDevice:
    """A device as the runtime describes it; ``None`` is what this runtime does not tell.

    `index` counts among the devices visible to this process; `token` selects the device as
    ROCR_VISIBLE_DEVICES. `lds_bytes` are per block, `l2_bytes` of one XCD. A GPU with two dies (MI250X) or
    in partitions shows as several devices.
    """

    index: int
    token: str
    name: str
    arch: str
    pci: str
    memory_bytes: int
    compute_units: int | None
    xcds: int | None
    lds_bytes: int | None
    l2_bytes: int | None
    wave_size: int | None
    clock_mhz: float | None
    memory_clock_mhz: float | None
    memory_bus_bits: int | None
    runtime: str

    @property
    def title(self) -> str:
        """The name, or where the runtime has none (containers without libdrm's table) the architecture."""
        return self.name or f"AMD {self.arch}"


def find_runtime() -> Path | None:
    """The HIP runtime library of this machine, or ``None``; nothing is loaded.

    UsageError when KERNEL_SCIENTIST_HIP_LIBRARY names a file that is not there.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise UsageError(f"{LIBRARY_VARIABLE}: there is no file {path}; name the machine's {_NAME}")
        return path.absolute()
    for folder in _folders():
        for path in (folder / _NAME, *sorted(folder.glob(f"{_NAME}.*"), reverse=True)):
            if path.is_file():
                return path.absolute()
    return None


def require_runtime() -> Path:
    """The runtime library. UnusableEnvironment when there is none."""
    library = find_runtime()
    if library is None:
        raise UnusableEnvironment(
            f"No ROCm runtime ({_NAME}) was found; install ROCm, or set ROCM_PATH to its folder or "
            f"{LIBRARY_VARIABLE} to the library."
        )
    return library


def devices(library: Path | None = None) -> tuple[RocmDevice, ...]:
    """The devices that ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave to this process; () without ROCm.

    Asks a process of its own, which takes as long as the runtime takes to start. UnusableEnvironment, with
    the runtime's own words, when the runtime is there and cannot say.
    """
    library = library if library is not None else find_runtime()
    if library is None:
        return ()
    answer = ask(library)
    if "unloadable" in answer:
        raise UnusableEnvironment(f"{library} cannot be loaded: {answer['unloadable']}.")
    if "error" in answer:
        error = answer["error"]
        raise UnusableEnvironment(
            f"The ROCm runtime {library} fails in {error['call']}: {error['name']}, {error['text']}; "
            "check the amdgpu driver and that this user may open /dev/kfd and /dev/dri."
        )
    version = _version(int(answer["version"]))
    return tuple(_device(index, facts, version) for index, facts in enumerate(answer["devices"]))


def ask(
    library: Path, argv: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The worker's answer to ``devices``, started with `argv`, by default without a cage.

    UnusableEnvironment when it gives none.
    """
    argv = argv or worker_argv(["devices", str(library)])
    environment = environment or worker_environment(library)
    done = run(argv, cwd=Path("/"), timeout_s=_TIMEOUT_S, env=environment)
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return answer
    how = "did not answer in time" if done.timed_out else f"ended with status {done.returncode}"
    said = "".join(f" ({line[:300]})" for line in done.stderr.decode(errors="replace").split("\n")[-2:-1])
    raise UnusableEnvironment(
        f"The ROCm runtime {library} {how}{said} when asked for its devices; check the amdgpu driver with "
        "rocminfo."
    )


def answers(library: Path, device: RocmDevice) -> bool:
    """Whether the runtime still finds `device`, in a process of its own that sees it alone."""
    try:
        found = ask(library, environment=worker_environment(library, device.token))
    except UnusableEnvironment:
        return False
    return bool(found.get("devices"))


def _device(index: int, facts: dict[str, Any], version: str) -> RocmDevice:
    clock, memory_clock = facts.pop("clock_khz"), facts.pop("memory_clock_khz")
    return RocmDevice(
        index=index,
        token=visible_token(index),
        clock_mhz=None if clock is None else clock / 1000,
        memory_clock_mhz=None if memory_clock is None else memory_clock / 1000,
        runtime=version,
        **facts,
    )


def _version(number: int) -> str:
    """HIP_VERSION as people write it: major, minor (two digits) and patch (five digits)."""
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def _folders() -> Iterator[Path]:
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "lib"
    yield Path("/opt/rocm/lib")
    for folder in sorted(Path("/opt").glob("rocm-*"), reverse=True):
        yield folder / "lib"
    spec = importlib.util.find_spec("_rocm_sdk_core")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "lib"
    yield from (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"))
