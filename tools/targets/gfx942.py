"""What the compiler for gfx942 makes of a kernel, on whatever device the kernel itself is run."""

from __future__ import annotations

from functools import cached_property
from typing import final

from kernel_scientist.sandbox.cage import Cage
from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, Compiler, CompileRequest
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.errors import UnusableEnvironment

__all__ = ["Gfx942Reporter"]

_ARCH = "gfx942"


@final
class Gfx942Reporter:
    """Compiles to report; the compiler is looked for when it is first needed."""

    def __init__(self, cage: Cage) -> None:
        self._cage = cage

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        """As `Device.report`."""
        compiler = self._compiler
        return compiler if isinstance(compiler, str) else compiler.compile(request)

    @cached_property
    def _compiler(self) -> Compiler | str:
        try:
            return open_compiler(_ARCH, cage=self._cage)
        except UnusableEnvironment as error:
            return f"no {_ARCH} report: {error}"
