"""What a compiler is asked and what it answers, the same for every architecture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from .resources import KernelResources

__all__ = [
    "BufferArgument",
    "CodeObject",
    "CompileFailure",
    "CompileRequest",
    "CompiledKernel",
    "Compiler",
    "EntryPoint",
    "ScalarArgument",
]


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A device pointer the plan passes. `dtype` is a NumPy/ml_dtypes name such as ``bfloat16``."""

    name: str
    dtype: str
    writable: bool


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number the plan passes; `name` is the plan's expression, `dtype` an integer or float name."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One kernel as the plan launches it: a C++ name or template-id and the arguments it will get.

    `threads` is the largest block size (in threads) it is launched with, `dynamic_lds_bytes` the most
    dynamic LDS; both bound occupancy and neither changes the code.
    """

    kernel: str
    arguments: tuple[BufferArgument | ScalarArgument, ...]
    threads: int
    dynamic_lds_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One translation unit: the candidate's text, its ``-D`` constants, the kernels to export."""

    source: str
    entries: tuple[EntryPoint, ...]
    constants: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """An exported kernel. `static_lds_bytes` excludes dynamic LDS; `symbol` is its linker name."""

    entry: EntryPoint
    symbol: str
    static_lds_bytes: int
    needs_fibers: bool = True
    resources: KernelResources | None = None


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A finished build in the content-addressed cache; `kernels` is in the order of the request."""

    arch: str
    path: Path
    key: str
    kernels: tuple[CompiledKernel, ...]
    log: str
    compiler: str
    seconds: float
    cached: bool


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """The source did not become a code object.

    `stage` is ``plan`` when the launch plan and the source disagree (no such kernel, wrong argument
    type or count), ``source`` for the compiler's own errors, ``limits`` for what the hardware or the
    compile limits refuse (LDS over 64 KiB, time, memory). `message` is short and fit for a person or
    a model, with the candidate's own line numbers; `log` is the compiler's whole (bounded) output.
    """

    arch: str
    stage: Literal["plan", "source", "limits"]
    message: str
    log: str
    compiler: str
    seconds: float


class Compiler(Protocol):
    """Turns a request into a code object for one architecture (``cpu``, ``gfx942`` ...)."""

    @property
    def arch(self) -> str: ...

    @property
    def name(self) -> str:
        """Compiler and version, as recorded in results."""
        ...

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure: ...
