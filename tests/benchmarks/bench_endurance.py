"""Many candidates in a row through one judge on a stand-in GPU: what each costs, and that nothing stays.

The stand-in runs kernels on the CPU (tests/sandbox/fakehip); its times say nothing of a GPU. There are
`BENCH_CANDIDATES` of them: honest ones, wrong ones, one that does not compile, and launches that fail.
A worker whose launch failed ends with what it holds, as the device's own driver would free it then.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))


from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets import resolve_target
from tests.sandbox.fakehip.machine import FakeRocm, build_fake_rocm
from tests.sandbox.leftovers import open_files, resident_mb, workers
from tests.tools.conftest import HONEST, PLAN, write_problem

CANDIDATES = int(os.environ.get("BENCH_CANDIDATES", "500"))
SOURCES = (
    HONEST.replace("2.0f * tile", "tile[threadIdx.x + 1] + tile"),
    HONEST.replace("2.0f * tile", "3.0f * tile"),
    HONEST.replace("__shared__", "__shared_"),
    HONEST.replace("i < n", "n > i"),
    HONEST.replace("i < n", "i + 1 <= n"),
)
FAULTS = ("", "", "", "", "fail hipModuleLaunchKernel 1")


def main() -> None:
    """Evaluate the candidates one after the other; raise when a file, process or block of memory stays."""
    with tempfile.TemporaryDirectory(prefix="kernel-scientist-endurance-") as scratch:
        rocm = build_fake_rocm(Path(scratch, "rocm"))
        os.environ["ROCM_PATH"] = str(rocm.root)
        os.environ.pop("HIP_VISIBLE_DEVICES", None)
        _endure(rocm, _judge(Path(scratch, "filter")), Path(scratch))


def _judge(folder: Path) -> Judge:
    tier = TierSettings(1, 1, 0.2, 3, warm_up=1)
    settings = JudgeSettings(
        screen=tier,
        confirm=replace(tier, checked_runs=1_000_000),
        batch_s=0.002,
        max_runs=4,
        held_out_shapes=1,
    )
    problem = write_problem(folder, shapes="mi300")
    return Judge(problem, resolve_target("mi300"), Kernel.load(problem.default_kernel), settings=settings)


def _endure(rocm: FakeRocm, judge: Judge, scratch: Path) -> None:
    path = scratch / "candidate.hip"
    verdicts, seconds = Counter[str](), list[float]()
    opened, used = 0, 0.0
    with rocm.calls() as log:
        for number in range(CANDIDATES):
            rocm.configure(FAULTS[number % len(FAULTS)])
            path.write_text(PLAN + SOURCES[number % len(SOURCES)])
            began = time.perf_counter()
            evaluation = judge.evaluate(Kernel.load(path))
            seconds.append(time.perf_counter() - began)
            verdicts[evaluation.verdict.value] += 1
            if number == min(50, CANDIDATES // 2):
                opened, used = open_files(), resident_mb()
        files, grown = open_files() - opened, resident_mb() - used
    held = [
        line
        for line in log
        if " exit " in line and not line.endswith("blocks=0 events=0 streams=0 modules=0")
    ]
    misused = [line for line in log if "misuse" in line]
    tenth = max(1, CANDIDATES // 10)
    first, last = (
        statistics.median(seconds[tenth : 2 * tenth] or seconds),
        statistics.median(seconds[-tenth:]),
    )
    failed = verdicts["launch_error"]
    told = ", ".join(f"{count} {name}" for name, count in verdicts.items())
    print(f"{CANDIDATES} candidates in a row: {told}")
    print(f"  a candidate, median of the second and the last tenth   {first:.2f} s, {last:.2f} s")
    print(f"  after the first fifty: files more open {files}, memory {grown:+.1f} MB")
    print(f"  workers that live on {len(workers(rocm))}, misuses of the runtime {len(misused)}")
    print(f"  workers that ended holding something {len(held)}, for {failed} launches that failed")
    if files > 0 or grown > 50 or len(held) > failed or misused or workers(rocm) or len(verdicts) < 4:
        raise AssertionError(f"something stayed behind, or verdicts are missing: {held[:3]} {misused[:3]}")


if __name__ == "__main__":
    main()
