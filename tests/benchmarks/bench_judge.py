"""The judge's cost: from source to verdict by stage, and how much the same kernel's times differ."""

from __future__ import annotations

import math
import re
import time

from kernel_scientist.tools.evaluation import Evaluation
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem, list_problems
from kernel_scientist.tools.targets import resolve_target
from kernel_scientist.tools.targets.cpu import CpuTarget

STAGES = ("compile", "correctness", "gfx942", "timing", "total")
COMPARISONS = 3


def stages(evaluation: Evaluation) -> str:
    return "  ".join(f"{stage} {evaluation.seconds.get(stage, 0.0):6.2f}" for stage in STAGES)


def variant(kernel: Kernel, text: str) -> Kernel:
    """The same kernel as another candidate: nothing of an earlier build or evaluation fits it."""
    return Kernel.parse(f"{kernel.source}\n// {text}\n")


def from_source_to_verdict() -> None:
    target = resolve_target("auto")
    print(f"{target.name}: {target.device}, sandbox {target.sandbox}")
    if isinstance(target, CpuTarget):
        began = time.perf_counter()
        roofline = target.roofline(again=True)
        print(f"speed of light, measured once a machine ({time.perf_counter() - began:.2f} s): {roofline}")
    print("seconds from source to verdict, screen tier, nothing cached:")
    for name in list_problems():
        problem = Problem.load(name)
        kernel = Kernel.load(problem.default_kernel)
        judge = Judge(problem, target, kernel)
        judge.evaluate(kernel)
        right = judge.evaluate(variant(kernel, "again"))
        print(f"  {name:11} right: {right.verdict.value:12} {stages(right)}")
        wrong = judge.evaluate(one_block(kernel))
        print(f"  {name:11} wrong: {wrong.verdict.value:12} {stages(wrong)}")


def one_block(kernel: Kernel) -> Kernel:
    """A wrong kernel: launched with a single block it leaves most of its output unwritten."""
    return Kernel.parse(re.sub(r"(?m)^grid = .*$", "grid = 1", kernel.source))


def same_kernel() -> None:
    """A/A: the confirm tier on two copies of one kernel, which differ by noise alone."""
    target = resolve_target("auto")
    problem = Problem.load("matmul")
    kernel = Kernel.load(problem.default_kernel)
    judge = Judge(problem, target, kernel)
    judge.evaluate(kernel)
    print(f"matmul against itself, confirm tier, {COMPARISONS} times:")
    for index in range(COMPARISONS):
        began = time.perf_counter()
        comparison = judge.compare(kernel, variant(kernel, f"copy {index}"))
        seconds = time.perf_counter() - began
        speedup = comparison.speedup
        claim = "a false claim" if speedup.low > 1.0 or speedup.high < 1.0 else "no claim"
        print(
            f"  ratio {speedup.value:.4f} [{speedup.low:.4f}, {speedup.high:.4f}] at {speedup.level:.0%}: "
            f"{claim}; {seconds:.1f} s"
        )
        for timing in comparison.timings:
            spread = (timing.high_us - timing.low_us) / timing.time_us
            width = math.log(timing.speedup.high / timing.speedup.low) / 2 if timing.speedup else math.nan
            print(
                f"    {dict(timing.shape)}: {timing.time_us:.1f} us, interquartile spread {spread:.1%} over "
                f"{timing.batches} batches of {timing.launches_per_batch}, interval +- {width:.1%}"
            )


def main() -> None:
    from_source_to_verdict()
    same_kernel()


if __name__ == "__main__":
    main()
