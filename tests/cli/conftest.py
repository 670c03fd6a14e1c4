"""The command as people start it: a process of its own, with its output and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest


@dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)


class Command(Protocol):
    """Runs ``kernel-scientist`` with arguments, in the test's own folder unless `cwd` is given."""

    def __call__(
        self, *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Done: ...


def entry_point() -> list[str]:
    """The installed console script, or the same by module where the environment has none."""
    script = Path(sys.executable).with_name("kernel-scientist")
    return [str(script)] if script.exists() else [sys.executable, "-P", "-m", "kernel_scientist.agents.cli"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    def run(*arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        done = subprocess.run(
            [*entry_point(), *map(str, arguments)],
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run
