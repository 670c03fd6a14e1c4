"""The spaces of the search benchmark, each a cache file: recorded here, made up, or given by the user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.sandbox.files import atomic_write
from kernel_scientist.tools.recording import load_recording

__all__ = ["BenchSpace", "given", "write_made_up"]

Value = int | float | str


@dataclass(frozen=True, slots=True)
class BenchSpace:
    """A cache file with what it holds; `plain` when Kernel Tuner can read it as it is."""

    name: str
    file: Path
    count: int
    failed: int
    optimum: float
    plain: bool


def given(name: str, file: Path, folder: Path) -> BenchSpace:
    """A space from a cache file; one whose writer was killed gets a closed copy in `folder`."""
    recording = load_recording(file)
    times = [row.time_ms for row in recording.rows.values() if row.times_ms]
    closed = _closed(file, folder)
    return BenchSpace(
        name=f"{name}, {recording.device}",
        file=closed or file,
        count=len(recording.rows),
        failed=len(recording.rows) - len(times),
        optimum=min(times),
        plain=closed is not None,
    )


def write_made_up(
    name: str,
    lists: Mapping[str, Sequence[Value]],
    times: Mapping[tuple[Value, ...], float | None],
    folder: Path,
) -> Path:
    """A cache file of made-up times."""
    rows = {
        ",".join(map(str, values)): {
            **dict(zip(lists, values, strict=True)),
            "time": "RuntimeFailedConfig" if taken is None else taken,
        }
        for values, taken in times.items()
    }
    document = {
        "device_name": "made up, nothing measured",
        "kernel_name": name.replace(" ", "_"),
        "problem_size": [1],
        "tune_params_keys": list(lists),
        "tune_params": lists,
        "objective": "time",
        "cache": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name.replace(' ', '_')}.json"
    atomic_write(file, json.dumps(document))
    return file


def _closed(file: Path, folder: Path) -> Path | None:
    """A copy that is closed and in one piece; ``None`` where the file is no plain cache file."""
    for document in _readings(file):
        if "cache" in document:
            folder.mkdir(parents=True, exist_ok=True)
            closed = folder / f"{file.stem}.json"
            atomic_write(closed, json.dumps(document))
            return closed
    return None


def _readings(file: Path) -> Iterator[dict[str, object]]:
    if file.suffix == ".gz":
        return
    text = file.read_text(encoding="utf-8").rstrip()
    for whole in (text, text.rstrip(",") + "}}"):
        try:
            yield json.loads(whole)
        except ValueError:
            continue
