"""A candidate as a code object for a CDNA GPU, with the compiler's account of what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .assembly import count_instructions, entry_symbols, reads_files
from .build_cache import digest
from .cage import Cage
from .compilation import CompiledKernel, CompileRequest, EntryPoint
from .compile_step import INCLUDE, BuildError, Workbench
from .gpu_metadata import read_metadata
from .limits import check_block
from .occupancy import occupancy
from .resources import KernelResources
from .toolchain import Toolchain
from .unit import Unit

__all__ = ["GpuBackend"]

_FLAGS = (
    "-x", "hip", "--cuda-device-only", "-std=c++20", "-O3", "-fdeclspec",
    "-fno-color-diagnostics", "-fno-crash-diagnostics",
    "-ferror-limit=20", "-Wno-c++26-extensions", "-Wno-unused-value",
)  # fmt: skip
# The driver drops -MD for device code; these reach the compiler proper.
_DEPENDENCIES = (
    "-Xclang", "-dependency-file", "-Xclang", "unit.d", "-Xclang", "-MT", "-Xclang", "unit",
    "-Xclang", "-sys-header-deps",
)  # fmt: skip
_ASSEMBLY = "unit.s"


@final
@dataclass(frozen=True, slots=True)
class GpuBackend:
    """Builds for one GPU architecture, with ROCm's headers where there are any, else with our own."""

    toolchain: Toolchain
    arch: str
    cage: Cage | None = None
    file: str = "kernel.co"

    def identity(self) -> list[str]:
        """What besides the unit decides the outcome."""
        rocm = str(self.toolchain.rocm or "")
        return [digest(_header_parts()), rocm, *_FLAGS]

    def build(self, job: Path, unit: Unit, request: CompileRequest) -> dict[str, Any]:
        """Leave the code object in `job`; the facts per kernel are its metadata and instruction counts."""
        bench = Workbench(self.toolchain, self.cage, job, request, unit)
        log = bench.compile([
            *_FLAGS, f"--offload-arch={self.arch}", *self._headers(),
            *_DEPENDENCIES, "-S", "unit.cpp", "-o", _ASSEMBLY,
        ])  # fmt: skip
        bench.check_dependencies("unit.d")
        assembly = (job / _ASSEMBLY).read_text(errors="replace")
        if reads_files(assembly):
            raise BuildError("source", "kernel.hip: error: inline assembly may not read files", log)
        bench.compile([
            "-target", "amdgcn-amd-amdhsa", f"-mcpu={self.arch}", "-nogpulib",
            "-c", _ASSEMBLY, "-o", "unit.o",
        ])  # fmt: skip
        bench.link(["-shared", "--no-undefined", "unit.o", "-o", self.file])
        kernels = read_metadata(job / self.file)
        symbols = entry_symbols(assembly)
        facts: list[dict[str, Any]] = []
        for number, entry in enumerate(request.entries):
            symbol = symbols.get(number, "")
            if symbol not in kernels:
                raise BuildError("plan", f"{entry.kernel} of the plan is not a __global__ function", log)
            facts.append(_facts(symbol, kernels[symbol], assembly))
        return {"log": log, "kernels": facts}

    def kernel(self, entry: EntryPoint, facts: dict[str, Any]) -> CompiledKernel:
        """Raises `BuildError` when the block that the plan launches does not fit."""
        check_block(entry, facts["lds"], facts["max_threads"])
        lds = facts["lds"] + entry.dynamic_lds_bytes
        fit = occupancy(
            self.arch,
            registers=facts["vgprs"] + facts["agprs"],
            scalars=facts["sgprs"],
            lds_bytes=lds,
            threads=entry.threads,
        )
        resources = KernelResources(
            kernel=entry.kernel,
            arch=self.arch,
            vgprs=facts["vgprs"],
            agprs=facts["agprs"],
            sgprs=facts["sgprs"],
            vgpr_spills=facts["vgpr_spills"],
            sgpr_spills=facts["sgpr_spills"],
            lds_bytes=lds,
            scratch_bytes=facts["scratch"],
            occupancy=fit.waves,
            limited_by=fit.limited_by,
            instructions=facts["instructions"],
        )
        return CompiledKernel(entry, facts["symbol"], facts["lds"], resources=resources)

    def _headers(self) -> list[str]:
        if self.toolchain.rocm is not None:
            return [f"--rocm-path={self.toolchain.rocm}", "-isystem", str(INCLUDE)]
        folders = (INCLUDE / "amdgpu", INCLUDE / "common", INCLUDE, self.toolchain.include)
        own = [argument for folder in folders for argument in ("-isystem", str(folder))]
        return ["-nogpuinc", "-nogpulib", "-nostdinc", "-nostdinc++", *own]


def _header_parts() -> list[bytes | str]:
    files = sorted(path for path in INCLUDE.rglob("*") if path.is_file())
    return [part for path in files for part in (str(path.relative_to(INCLUDE)), path.read_bytes())]


def _facts(symbol: str, kernel: dict[str, Any], assembly: str) -> dict[str, Any]:
    """`.vgpr_count` is the total of a lane's registers, AGPRs included, on every CDNA GPU since gfx90a."""
    agprs = int(kernel.get(".agpr_count", 0))
    return {
        "symbol": symbol,
        "lds": int(kernel[".group_segment_fixed_size"]),
        "max_threads": int(kernel.get(".max_flat_workgroup_size", 1024)),
        "vgprs": int(kernel[".vgpr_count"]) - agprs,
        "agprs": agprs,
        "sgprs": int(kernel[".sgpr_count"]),
        "vgpr_spills": int(kernel.get(".vgpr_spill_count", 0)),
        "sgpr_spills": int(kernel.get(".sgpr_spill_count", 0)),
        "scratch": int(kernel[".private_segment_fixed_size"]),
        "instructions": dict(count_instructions(assembly, symbol)),
    }
