"""Kernel Tuner's strategies for the search benchmark: installed for it alone, their runs kept on disk.

A kept result counts only for the same file, strategy, seeds, evaluations and version, so that a repeated
benchmark runs none of them twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.sandbox.files import atomic_write

__all__ = ["STRATEGIES", "TUNER", "Runs", "install_tuner", "run_job"]

HERE = Path(__file__).parent
TUNER = "kernel-tuner==1.5.0"
STRATEGIES = (
    "basinhopping", "bayes_opt", "diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm",
    "greedy_ils", "greedy_mls", "minimize", "mls", "ordered_greedy_mls", "pso", "simulated_annealing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runs:
    """For each run the best time after each evaluation, and the CPU seconds of all of them."""

    curves: list[list[float | None]]
    cpu_s: float


def install_tuner(folder: Path) -> Path | str:
    """The interpreter of an environment that has Kernel Tuner, made when there is none; else why not."""
    python = folder / "bin/python"
    if (folder / "ready").exists() and python.exists():
        return python
    try:
        venv.create(folder, with_pip=True, clear=True)
        command: Sequence[str | Path] = (
            python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", TUNER,
        )  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return f"it cannot be installed ({said[-1] if said else error})"
    (folder / "ready").touch()
    return python


def run_job(
    python: str | Path, script: str, job: dict[str, object], *, kept: Path | None = None
) -> Runs | str:
    """Run a strategy in an interpreter of its own, on one thread; a string says why there are no runs."""
    file = None if kept is None else kept / f"{_key(script, job)}.json"
    if file is not None and file.exists():
        return Runs(**json.loads(file.read_text(encoding="utf-8")))
    done = subprocess.run(
        [python, "-P", HERE / script],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=3600,
        env=_single_threaded(),
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"exit {done.returncode}"
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(file, done.stdout)
    return Runs(**json.loads(done.stdout))


def _single_threaded() -> dict[str, str]:
    """For matrices as small as these, the threads of a BLAS cost more than they gain."""
    return os.environ | {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}


def _key(script: str, job: dict[str, object]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in (TUNER, json.dumps({**job, "cache": ""}, sort_keys=True)):
        digest.update(part.encode())
    digest.update(Path(str(job["cache"])).read_bytes())
    digest.update((HERE / script).read_bytes())
    return f"{job['strategy']}-{digest.hexdigest()}"
