"""A candidate as a static image for the HIP-on-CPU device: compile, see what is reachable, link."""

from __future__ import annotations

import functools
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .build_cache import BuildCache, digest
from .cage import Cage
from .compilation import CompiledKernel, CompileRequest, EntryPoint
from .compile_step import INCLUDE, BuildError, Workbench
from .diagnostics import undefined_sentence
from .errors import InternalError, UnusableEnvironment
from .limits import check_block
from .object_file import ObjectFile
from .processes import run
from .toolchain import Toolchain
from .unit import KERNEL_FILE, Unit

__all__ = ["RUNTIME", "CpuBackend", "cpu_includes"]

RUNTIME = Path(__file__).parent / "runtime"

_LDS_SECTION = ".bss.ks_lds"
_BARRIERS = frozenset({"ks_barrier", "ks_wave_barrier"})
_SYMBOL = re.compile(r"(?!ks_)[A-Za-z_]\w{0,400}", re.ASCII)
_COMMON_FLAGS = (
    "-target", "x86_64-unknown-linux-gnu", "-std=c++20", "-O3", "-nostdinc", "-nostdinc++",
    "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-pic", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-ffunction-sections", "-fdata-sections",
    "-fno-color-diagnostics", "-fno-crash-diagnostics",
)  # fmt: skip
# -ffp-contract=fast and -fno-math-errno are what HIP compiles device code with. GNU assembly is off because
# it could read files (.incbin), and assembly for a GPU means nothing here.
_KERNEL_FLAGS = (
    "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-gnu-inline-asm", "-fdeclspec",
    # As for a GPU: calls must not move between branches, for the lanes of a wave meet at a call's address;
    # and no operation on halves keeps more precision than a half.
    "-fconvergent-functions", "-mllvm", "-enable-tail-merge=false", "-fexcess-precision=16",
    "-ferror-limit=20", "-Wno-c++26-extensions", "-Wno-unknown-attributes", "-Wno-unused-value",
)  # fmt: skip
_RUNTIME_FLAGS = ("-fno-builtin", "-march=x86-64-v2")


@final
@dataclass(frozen=True, slots=True)
class CpuBackend:
    """Builds for the CPU that this runs on; the images are not for another machine."""

    toolchain: Toolchain
    builds: BuildCache
    cage: Cage | None = None
    file: str = "kernel.elf"

    def identity(self) -> list[str]:
        """What besides the unit decides the outcome."""
        return [_trusted_sources(), _host_features(), *_COMMON_FLAGS, *_KERNEL_FLAGS]

    def build(self, job: Path, unit: Unit, request: CompileRequest) -> dict[str, Any]:
        """Leave the image in `job`; the facts per kernel are LDS bytes and whether it needs fibers."""
        bench = Workbench(self.toolchain, self.cage, job, request, unit)
        log = bench.compile([
            *_COMMON_FLAGS, *_KERNEL_FLAGS, *cpu_includes(self.toolchain), "-MD", "-MF", "unit.d",
            "-c", "unit.cpp", "-o", "unit.o",
        ])  # fmt: skip
        bench.check_dependencies("unit.d")
        runtime = self._runtime()
        unit_object = ObjectFile(job / "unit.o")
        provided = _defined_in(runtime)
        missing = [name for name in unit_object.undefined if name not in provided]
        _refuse_undefined(unit_object, missing, unit)
        facts = [_facts(unit_object, number) for number in range(len(request.entries))]
        bench.link([
            "-static", "--gc-sections", "--no-dependent-libraries", "-z", "noexecstack",
            "-T", str(RUNTIME / "image.ld"),
            *(f"--defsym={name}=ks_dynamic_lds" for name in missing), "unit.o", str(runtime), "-o", self.file,
        ], readable=(RUNTIME, runtime))  # fmt: skip
        return {"log": log, "kernels": facts}

    def kernel(self, entry: EntryPoint, facts: dict[str, Any]) -> CompiledKernel:
        """Raises `BuildError` when the block that the plan launches does not fit."""
        check_block(entry, facts["lds"])
        return CompiledKernel(entry, facts["symbol"], facts["lds"], needs_fibers=facts["fibers"])

    def _runtime(self) -> Path:
        """The runtime's object file, built once per compiler and kept in the cache."""
        sources = sorted(RUNTIME.glob("*.cpp"))
        key = digest(["runtime", self.toolchain.name, _trusted_sources(), *_COMMON_FLAGS, *_RUNTIME_FLAGS])

        def make(job: Path) -> dict[str, Any]:
            objects: list[str] = []
            for source in sources:
                objects.append(f"{source.stem}.o")
                flags = [*_COMMON_FLAGS, *_RUNTIME_FLAGS, *cpu_includes(self.toolchain)]
                _run_trusted([*self.toolchain.clang, *flags, "-c", str(source), "-o", objects[-1]], job)
            _run_trusted([*self.toolchain.lld, "-r", *objects, "-o", "runtime.o"], job)
            return {}

        return self.builds.build(key, "runtime.o", make).path


def cpu_includes(toolchain: Toolchain) -> list[str]:
    """Where headers for the CPU device are found, first match first."""
    folders = (INCLUDE / "cpu", INCLUDE / "common", INCLUDE, toolchain.include)
    return [argument for folder in folders for argument in ("-isystem", str(folder))]


@functools.cache
def _defined_in(runtime: Path) -> frozenset[str]:
    """What the runtime's object defines; its path holds the hash of all that made it."""
    return frozenset(ObjectFile(runtime).defined)


def _facts(unit: ObjectFile, number: int) -> dict[str, Any]:
    symbol = f"ks_fiber_{number}"
    if symbol not in unit.defined:
        reason = (
            f"{KERNEL_FILE}: error: a macro hides kernel {number} of the plan; names with ks_ are reserved"
        )
        raise BuildError("source", reason, "")
    reach = unit.reach(symbol)
    return {
        "symbol": symbol,
        "lds": unit.bytes_in(reach.sections, _LDS_SECTION),
        "fibers": not _BARRIERS.isdisjoint(reach.undefined),
    }


def _refuse_undefined(unit_object: ObjectFile, missing: list[str], unit: Unit) -> None:
    """Names that nobody defines must be the dynamic LDS arrays of the source."""
    for symbol in missing:
        # An assembler name may be any text, and this one becomes part of an option of the linker.
        if unit.dynamic_lds and symbol not in unit_object.called and _SYMBOL.fullmatch(symbol):
            continue
        kind = "function" if symbol in unit_object.called else "variable"
        raise BuildError("source", undefined_sentence(_plain_name(symbol), kind, unit.kernel), "")


def _plain_name(symbol: str) -> str:
    """The last identifier of an Itanium-mangled name."""
    rest = re.sub(r"^_ZN?", "", symbol) if symbol.startswith("_Z") else ""
    name = symbol
    while match := re.match(r"(\d+)", rest):
        length = int(match.group())
        name = rest[match.end() : match.end() + length]
        rest = rest[match.end() + length :]
    return name


def _run_trusted(argv: list[str], folder: Path) -> None:
    completed = run(argv, cwd=folder, timeout_s=120.0, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)})
    if completed.returncode != 0:
        said = completed.stderr.decode(errors="replace")[:2000]
        raise InternalError(f"The device runtime does not compile: {said}")


@functools.cache
def _trusted_sources() -> str:
    """A digest of the headers and the runtime that every image is made with."""
    files = [*INCLUDE.rglob("*.h"), *(path for path in RUNTIME.iterdir() if path.is_file())]
    return digest(
        part for path in sorted(files) for part in (str(path.relative_to(INCLUDE.parent)), path.read_bytes())
    )


@functools.cache
def _host_features() -> str:
    """What ``-march=native`` depends on."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise UnusableEnvironment(f"The cpu target runs on x86-64 only, and this is {platform.machine()}.")
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags")
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if line.partition(":")[0].strip() in wanted)
