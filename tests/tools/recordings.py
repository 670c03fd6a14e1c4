"""Recorded search spaces for tests, as documents in both layouts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

NAMES = ("block", "layout", "unroll")


def cache_document(**changes: object) -> Json:
    """A cache file of three parameters, one of words: 7 configurations, three of them failed."""
    rows = {
        (32, "row", 1): {"time": 4.0, "times": [4.0, 4.2, 3.8, 4.1, 3.9, 4.0, 4.05]},
        (64, "row", 1): {"time": 2.0, "times": [2.0, 2.1, 1.9, 2.0, 2.0, 2.02, 1.98]},
        (64, "column", 1): {"time": 1.0, "times": [1.0, 1.1, 0.9, 1.0, 1.0, 1.01, 0.99]},
        (32, "column", 1): {"time": 3.0, "times": [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]},
        (32, "column", 2): {"time": "RuntimeFailedConfig"},
        (64, "column", 2): {"time": 1.5, "__error__": "CompilationFailedConfig"},
        (32, "row", 2): {"time": "InvalidConfig"},
    }
    document: Json = {
        "device_name": "Some GPU",
        "kernel_name": "toy",
        "problem_size": [1024, 512],
        "tune_params_keys": list(NAMES),
        "tune_params": {"block": [64, 32], "layout": ["row", "column"], "unroll": [1, 2]},
        "objective": "time",
        "cache": {
            ",".join(map(str, point)): {**dict(zip(NAMES, point, strict=True)), **row}
            for point, row in rows.items()
        },
    }
    return {**document, **changes}


def t4_document() -> Json:
    """The T4 layout: one row of every kind that it knows."""
    words = ("correct", "timeout", "compile", "runtime", "correctness", "constraints", "correct", "correct")
    results: list[Json] = []
    for number, word in enumerate(words):
        value: object = 2.0
        times: Json = {"compilation": 1.0, "runtimes": [2.5, 1.5, 2.0]}
        if number == 6:
            value, times = "RuntimeFailedConfig", {"compilation": 1.0}
        if number == 7:
            value, times = float("nan"), {}
        results.append(
            {
                "configuration": {"a": number, "on": number % 2 == 0},
                "times": times,
                "invalidity": word,
                "measurements": [{"name": "time", "value": value, "unit": ""}],
                "objectives": ["time"],
            }
        )
    return {"metadata": {"timeunit": "miliseconds"}, "schema_version": "1.0.0", "results": results}


def write_recording(path: Path, document: object, *, cut: int = 0) -> Path:
    """Write a document, packed where the name says so, `cut` characters short."""
    text = json.dumps(document, indent=0)
    data = text[: len(text) - cut].encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
