"""The HIP-on-CPU device as a test sees it: a source and NumPy arrays in, an outcome and NumPy arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401 - registers bfloat16 and the fp8 types with NumPy
import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    Compiler,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.execution import BatchOutcome, Finished, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

Array = NDArray[Any]


@dataclass(frozen=True)
class Device:
    """Compiles and runs one kernel; its parameters are the inputs, then the outputs, then the scalars."""

    compiler: Compiler
    cage: Cage

    def compile(
        self,
        source: str,
        kernel: str,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        scalars: Sequence[Any],
    ) -> CodeObject:
        arguments = (
            *(BufferArgument(name, array.dtype.name, False) for name, array in inputs.items()),
            *(BufferArgument(name, array.dtype.name, True) for name, array in outputs.items()),
            *(
                ScalarArgument(str(value), "float32" if isinstance(value, float) else "int32")
                for value in scalars
            ),
        )
        request = CompileRequest(
            f"#include <hip/hip_runtime.h>\n{source}", (EntryPoint(kernel, arguments, 1024),)
        )
        code = self.compiler.compile(request)
        assert isinstance(code, CodeObject), code.message
        return code

    def attempt(
        self,
        source: str,
        kernel: str = "kernel",
        *,
        inputs: Mapping[str, Array] | None = None,
        outputs: Mapping[str, Array],
        scalars: Sequence[Any] = (),
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (64, 1, 1),
        lds: int = 0,
        runs: int = 1,
        timeout_s: float = 20.0,
        reverse: bool = False,
    ) -> BatchOutcome:
        """Run the kernel; `outputs` give sizes, and receive what the last run wrote."""
        inputs = inputs or {}
        code = self.compile(source, kernel, inputs, outputs, scalars)
        arrays = [*inputs.items(), *outputs.items()]
        regions = [
            Region(name, array.nbytes, "read" if name in inputs else "write") for name, array in arrays
        ]
        pointers = tuple(Pointer(index) for index in range(len(regions)))
        launch = KernelLaunch(0, grid, block, lds, (*pointers, *scalars))
        with Workspace(regions, runs) as workspace:
            workspace.poison()
            for index, array in enumerate(inputs.values()):
                workspace.fill(index, array.tobytes())
            outcome = run_batch(
                code,
                workspace,
                [launch],
                count=runs,
                timeout_s=timeout_s,
                cage=self.cage,
                reverse_fibers=reverse,
            )
            for index, array in enumerate(outputs.values(), len(inputs)):
                array[...] = np.frombuffer(workspace.view(runs - 1, index), array.dtype).reshape(array.shape)
        return outcome

    def run(
        self, source: str, kernel: str = "kernel", *, outputs: Mapping[str, Array], **arguments: Any
    ) -> None:
        """As `attempt`, for a kernel that must come to its end."""
        outcome = self.attempt(source, kernel, outputs=outputs, **arguments)
        assert isinstance(outcome, Finished), outcome


@pytest.fixture(scope="session")
def cage() -> Cage:
    return select_cage(allow_none=True)


@pytest.fixture(scope="session")
def device(cage: Cage) -> Device:
    return Device(open_compiler("cpu"), cage)
