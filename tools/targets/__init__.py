"""Where kernels are evaluated; each target is one file here and one line in `_TARGETS`."""

from __future__ import annotations

from collections.abc import Callable

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError

from ..errors import nearest
from ..problem import RECORDED
from .base import Target

__all__ = ["Target", "resolve_target", "resolve_together", "target_names"]


def _cpu(allow_no_sandbox: bool) -> Target:
    from .cpu import CpuTarget

    return CpuTarget(allow_no_sandbox=allow_no_sandbox)


def _cpu_all_cores(allow_no_sandbox: bool) -> Target:
    from .cpu import CpuTarget

    return CpuTarget(allow_no_sandbox=allow_no_sandbox, all_cores=True)


def _mi300(allow_no_sandbox: bool) -> Target:
    from .mi300 import Mi300Target

    return Mi300Target(allow_no_sandbox=allow_no_sandbox)


def _mi300_warm(allow_no_sandbox: bool) -> Target:
    from .mi300 import Mi300Target

    return Mi300Target(allow_no_sandbox=allow_no_sandbox, caches="warm")


_TARGETS: dict[str, Callable[[bool], Target]] = {
    "mi300": _mi300,
    "mi300-warm": _mi300_warm,
    "cpu": _cpu,
    "cpu-all-cores": _cpu_all_cores,
}


def _best() -> str:
    """What ``auto`` stands for: a GPU's target where the runtime shows a device that it can use."""
    from kernel_scientist.sandbox.rocm import devices, find_runtime
    from kernel_scientist.sandbox.toolchain import ARCHITECTURES

    if find_runtime() is None:
        return "cpu"
    try:
        found = devices()
    except UnusableEnvironment:
        return "cpu"
    return "mi300" if any(device.arch in ARCHITECTURES for device in found) else "cpu"


def _recorded(file: str, allow_no_sandbox: bool) -> Target:
    del allow_no_sandbox  # nothing is run
    from .recorded import RecordedTarget

    return RecordedTarget(file)


def _ssh(place: str, allow_no_sandbox: bool) -> Target:
    from .ssh import SshTarget

    return SshTarget(f"ssh:{place}", allow_no_sandbox=allow_no_sandbox)


# Targets whose name goes on with what they are about, after a colon.
_NAMED: dict[str, Callable[[str, bool], Target]] = {RECORDED.rstrip(":"): _recorded, "ssh": _ssh}


def target_names() -> list[str]:
    """What `resolve_target` accepts."""
    return ["auto", *_TARGETS, "ssh://user@host", "recorded:FILE"]


def resolve_together(problem: str | None, target: str) -> tuple[str, str]:
    """The names of problem and target where one may stand for both: a recorded search space is either.

    UsageError when there is no problem.
    """
    if problem is None:
        if not target.startswith(RECORDED):
            raise UsageError("name a problem, such as matmul; only a target recorded:FILE brings its own")
        return target, target
    if problem.startswith(RECORDED) and target == "auto":
        return problem, problem
    return problem, target


def resolve_target(name: str = "auto", *, allow_no_sandbox: bool = False) -> Target:
    """The target called `name`; ``auto`` is the best this machine has, and the target's own name says which.

    UsageError for an unknown name, UnusableEnvironment when the machine lacks what the target needs.
    """
    if name == "auto":
        name = _best()
    kind, colon, rest = name.partition(":")
    if colon and kind in _NAMED:
        return _NAMED[kind](rest, allow_no_sandbox)
    if name not in _TARGETS:
        raise UsageError(f"there is no target '{name}'; {nearest(name, target_names())}")
    return _TARGETS[name](allow_no_sandbox)
