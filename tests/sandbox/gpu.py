"""A GPU as a test sees it: a source and NumPy arrays in, what came of the batch and NumPy arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kernel_scientist.sandbox.cage import select_cage
from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.execution import Fill, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.rocm import devices
from kernel_scientist.sandbox.rocm.batch_plan import CachePolicy
from kernel_scientist.sandbox.rocm.confinement import confine
from kernel_scientist.sandbox.rocm.discovery import require_runtime
from kernel_scientist.sandbox.rocm.process import DeviceWorker
from kernel_scientist.sandbox.rocm.supply import WorkerSupply
from kernel_scientist.sandbox.rocm.worker import BatchReport, run_batch
from kernel_scientist.sandbox.workspace import Workspace

Array = NDArray[Any]
FLUSH_BYTES = 1 << 29
GUARD_BYTES = 16384


class Gpu:
    """The first device of the environment; scalars are the kernel's last parameters."""

    def __init__(self, policy: Literal["cold", "warm"] = "cold") -> None:
        library = require_runtime()
        self.device = devices(library)[0]
        self.where = DeviceWorker(
            library, self.device, confine(select_cage(), library), CachePolicy(policy, FLUSH_BYTES)
        )
        self.compiler = open_compiler(self.device.arch)
        self.damaged: list[str] = []

    def compile(
        self,
        source: str,
        kernel: str,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        scalars: Sequence[Any],
    ) -> CodeObject:
        buffers = [BufferArgument(name, array.dtype.name, False) for name, array in inputs.items()]
        buffers += [BufferArgument(name, array.dtype.name, True) for name, array in outputs.items()]
        kinds = [
            ScalarArgument(str(one), "float32" if isinstance(one, float) else "int64") for one in scalars
        ]
        entry = EntryPoint(kernel, (*buffers, *kinds), 1024)
        code = self.compiler.compile(CompileRequest(f"#include <hip/hip_runtime.h>\n{source}", (entry,)))
        assert isinstance(code, CodeObject), code.log
        return code

    def run(
        self,
        source: str,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        scalars: Sequence[Any] = (),
        *,
        kernel: str = "kernel",
        grid: int = 1,
        block: int = 64,
        lds: int = 0,
        runs: int = 2,
        before: Sequence[Fill] = (),
        timeout_s: float = 5.0,
        supply: WorkerSupply | None = None,
    ) -> BatchReport:
        """Every run has the same inputs; `outputs` give dtype and shape, and receive the last run's."""
        code = self.compile(source, kernel, inputs, outputs, scalars)
        regions = [Region(name, array.nbytes, "read") for name, array in inputs.items()]
        regions += [Region(name, array.nbytes, "write") for name, array in outputs.items()]
        pointers = [Pointer(index) for index in range(len(regions))]
        launch = KernelLaunch(0, (grid, 1, 1), (block, 1, 1), lds, (*pointers, *scalars))
        with Workspace(regions, runs, slack_bytes=GUARD_BYTES) as workspace:
            for index, array in enumerate(inputs.values()):
                workspace.fill(index, np.ascontiguousarray(array).tobytes())
            workspace.poison()
            report = run_batch(
                self.where,
                code,
                workspace,
                [*before, launch],
                count=runs,
                timeout_s=timeout_s,
                supply=supply,
            )
            self.damaged = workspace.damaged()
            for index, array in enumerate(outputs.values(), start=len(inputs)):
                last = np.frombuffer(workspace.view(runs - 1, index), dtype=np.uint8)
                array.reshape(-1).view(np.uint8)[:] = last
        return report
