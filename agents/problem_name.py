"""What names a run's problem on a command line."""

from __future__ import annotations

from pathlib import Path

from .run import RunInfo

__all__ = ["problem_name"]


def problem_name(info: RunInfo) -> str:
    """The name of a bundled problem, perhaps as another installation's copy; else the problem's folder."""
    from kernel_scientist.tools.problem import BUNDLED

    if not info.problem_path or _same_folder(BUNDLED / info.problem, Path(info.problem_path), info):
        return info.problem
    return info.problem_path


def _same_folder(bundled: Path, folder: Path, info: RunInfo) -> bool:
    from kernel_scientist.tools.problem import Problem

    if not bundled.is_dir():
        return False
    return bundled.resolve() == folder.resolve() or Problem.load(info.problem).key == info.problem_key
