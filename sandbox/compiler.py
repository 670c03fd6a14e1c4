"""From a candidate's text to a code object: one interface over architectures, with a cache in front."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .build_cache import BuildCache, Built, digest
from .cage import Cage
from .compilation import CodeObject, CompileFailure, Compiler, CompileRequest
from .compile_step import BuildError
from .cpu_compiler import CpuBackend
from .files import cache_home
from .gpu_compiler import GpuBackend
from .toolchain import find_toolchain
from .unit import PlanMismatchError, generate_unit

__all__ = ["open_compiler"]

_FORMAT = "1"
_SOURCE_LIMIT = 1 << 20


def open_compiler(arch: str, *, cache: Path | None = None, cage: Cage | None = None) -> Compiler:
    """The compiler for ``cpu``, ``gfx942``, ``gfx90a`` or ``gfx950``; builds are kept under `cache`.

    The compiler itself runs in `cage`, by default in the best one of this machine.

    Raises `UsageError` for an unknown architecture, `UnusableEnvironment` when nothing here compiles for it.
    """
    toolchain = find_toolchain(arch)
    folder = cache if cache is not None else cache_home() / "builds"
    builds = BuildCache(folder)
    builds.prune()
    backend = CpuBackend(toolchain, builds, cage) if arch == "cpu" else GpuBackend(toolchain, arch, cage)
    return _CachingCompiler(arch, backend, builds)


@final
@dataclass(frozen=True, slots=True)
class _CachingCompiler:
    """A `Compiler`; threads and processes may share one cache."""

    arch: str
    backend: CpuBackend | GpuBackend
    builds: BuildCache

    @property
    def name(self) -> str:
        return self.backend.toolchain.name

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        start = time.monotonic()
        try:
            unit = generate_unit(request, cpu=self.arch == "cpu")
            key = digest([_FORMAT, self.arch, self.name, *self.backend.identity(), unit.kernel, unit.text])
            self._check_size(request)

            def make(job: Path) -> dict[str, Any]:
                facts = self.backend.build(job, unit, request)
                return {**facts, "seconds": time.monotonic() - start}

            built = self.builds.build(key, self.backend.file, make)
            return self._code_object(request, key, built, time.monotonic() - start)
        except PlanMismatchError as error:
            failure = BuildError("plan", str(error), "")
        except BuildError as error:
            failure = error
        return CompileFailure(
            self.arch, failure.stage, failure.message, failure.log, self.name, time.monotonic() - start
        )

    def _check_size(self, request: CompileRequest) -> None:
        if len(request.source) > _SOURCE_LIMIT:
            raise BuildError("limits", f"The source is larger than {_SOURCE_LIMIT} characters.", "")

    def _code_object(self, request: CompileRequest, key: str, built: Built, seconds: float) -> CodeObject:
        kernels = tuple(
            self.backend.kernel(entry, facts)
            for entry, facts in zip(request.entries, built.facts["kernels"], strict=True)
        )
        return CodeObject(
            arch=self.arch,
            path=built.path,
            key=key,
            kernels=kernels,
            log=built.facts["log"],
            compiler=self.name,
            seconds=seconds,
            cached=built.cached,
        )
