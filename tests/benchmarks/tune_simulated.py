"""Kernel Tuner's strategies on a recorded space, in its simulation mode; run by its own interpreter.

Reads a job as JSON from standard input and answers as `search_runs.py` does. It imports nothing
of this project.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import sys
import time
from typing import Any


def main() -> None:
    import kernel_tuner
    import numpy as np
    from constraint import FunctionConstraint

    job: dict[str, Any] = json.load(sys.stdin)
    with open(job["cache"], encoding="utf-8") as file:  # noqa: PTH123 - the interpreter's own little script
        document = json.load(file)
    names = document["tune_params_keys"]
    known = {tuple(row[name] for name in names) for row in document["cache"].values()}
    curves: list[list[float | None]] = []
    began = time.process_time()
    for seed in range(job["seed"], job["seed"] + job["runs"]):
        random.seed(seed)
        np.random.seed(seed)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            results, _ = kernel_tuner.tune_kernel(
                document["kernel_name"],
                "__global__ void " + document["kernel_name"] + "() {}",
                tuple(document["problem_size"]),
                [],
                document["tune_params"],
                restrictions=[FunctionConstraint(lambda *values: values in known)],
                strategy=job["strategy"],
                strategy_options={"max_fevals": job["evaluations"]},
                simulation_mode=True,
                cache=job["cache"],
                verbose=False,
                lang="CUDA",
            )
        curves.append(_curve(results))
    print(json.dumps({"curves": curves, "cpu_s": time.process_time() - began}))


def _curve(results: list[dict[str, Any]]) -> list[float | None]:
    best = math.inf
    curve: list[float | None] = []
    for one in results:
        taken = one.get("time")
        if isinstance(taken, (int, float)) and math.isfinite(taken):
            best = min(best, float(taken))
        curve.append(best if math.isfinite(best) else None)
    return curve


main()
