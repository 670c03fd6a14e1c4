"""Which clang compiles: ROCm's, else a system clang, else the one inside the ``ziglang`` package.

``zig clang`` and ``zig ld.lld`` are undocumented sub-commands of zig, so they appear in this module only.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import UnusableEnvironment, UsageError
from .processes import run

__all__ = ["ARCHITECTURES", "Toolchain", "describe_toolchains", "find_toolchain"]

ARCHITECTURES = ("cpu", "gfx942", "gfx90a", "gfx950")

_OVERRIDE = "KERNEL_SCIENTIST_TOOLCHAIN"
_OLDEST_CLANG = 19
# gfx942 came with LLVM 17, gfx950 with LLVM 20 (LLVM release notes, AMDGPU back end).
_OLDEST_FOR = {"gfx950": 20}

Kind = Literal["rocm", "clang", "zig"]


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A clang with its linker, as argv prefixes. `root` is what a cage must show for them to run.

    `include` holds clang's own headers (``stdint.h`` and the like, no C library); `rocm` is ROCm's folder
    when its device headers and libraries can be used.
    """

    kind: Kind
    version: str
    clang: tuple[str, ...]
    lld: tuple[str, ...]
    include: Path
    root: Path
    rocm: Path | None = None

    @property
    def name(self) -> str:
        return f"clang {self.version} ({'ROCm' if self.kind == 'rocm' else self.kind})"

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_toolchain(arch: str) -> Toolchain:
    """The preferred compiler for `arch`.

    Raises `UsageError` for an unknown architecture, `UnusableEnvironment` when there is no compiler for it.
    """
    if arch not in ARCHITECTURES:
        raise UsageError(f"Unknown architecture {arch!r}; choose one of {', '.join(ARCHITECTURES)}.")
    wanted = os.environ.get(_OVERRIDE)
    for toolchain in _toolchains(_named_rocm()):
        if wanted in (None, "", toolchain.kind) and toolchain.major >= _OLDEST_FOR.get(arch, 0):
            return toolchain
    limited = f" that {_OVERRIDE}={wanted} allows" if wanted else ""
    raise UnusableEnvironment(
        f"No compiler for {arch}{limited} was found; `pip install 'ziglang>=0.13,<0.18'` brings one, "
        f"or install ROCm or clang {_OLDEST_CLANG} with lld."
    )


def describe_toolchains() -> list[tuple[str, str]]:
    """Every compiler found, most preferred first, as (name, where it is)."""
    return [(toolchain.name, toolchain.clang[0]) for toolchain in _toolchains(_named_rocm())]


@functools.cache
def _toolchains(named_rocm: tuple[Path, ...]) -> tuple[Toolchain, ...]:
    return (*_rocm(named_rocm), *_system_clang(), *_zig())


def _named_rocm() -> tuple[Path, ...]:
    return tuple(Path(value) for value in map(os.environ.get, ("ROCM_PATH", "HIP_PATH")) if value)


def _rocm(named: tuple[Path, ...]) -> Iterator[Toolchain]:
    for folder in [*named, Path("/opt/rocm"), *sorted(Path("/opt").glob("rocm-*"), reverse=True)]:
        for bin_folder in (folder / "lib/llvm/bin", folder / "llvm/bin"):
            for name in ("amdclang++", "clang++"):
                clang, lld = bin_folder / name, bin_folder / "ld.lld"
                if clang.exists() and lld.exists() and (found := _probe("rocm", clang, lld, folder)):
                    yield found
                    return


def _system_clang() -> Iterator[Toolchain]:
    for suffix in ("", *(f"-{version}" for version in range(30, _OLDEST_CLANG - 1, -1))):
        clang = shutil.which(f"clang++{suffix}")
        if clang is None:
            continue
        beside = Path(clang).resolve().parent / "ld.lld"
        lld = str(beside) if beside.exists() else shutil.which(f"ld.lld{suffix}") or shutil.which("ld.lld")
        if lld and (found := _probe("clang", Path(clang), Path(lld), None)):
            yield found
            return


def _probe(kind: Kind, clang: Path, lld: Path, rocm: Path | None) -> Toolchain | None:
    version = _version((str(clang),))
    oldest = 17 if kind == "rocm" else _OLDEST_CLANG
    if version is None or int(version.split(".")[0]) < oldest:
        return None
    resources = Path(_answer((str(clang), "-print-resource-dir")).strip())
    # A system compiler is spread over its own prefix and the libraries under /usr.
    root = rocm.resolve() if rocm else Path("/usr")
    with_headers = rocm if rocm and (rocm / "include/hip/hip_runtime.h").exists() else None
    return Toolchain(kind, version, (str(clang),), (str(lld),), resources / "include", root, with_headers)


def _zig() -> Iterator[Toolchain]:
    # The package is looked for, not imported: importing it is allowed to have side effects.
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    zig = str(folder / "zig")
    version = _version((zig, "clang"))
    if version is not None:
        yield Toolchain("zig", version, (zig, "clang"), (zig, "ld.lld"), folder / "lib/include", folder)


def _version(clang: tuple[str, ...]) -> str | None:
    match = re.search(r"clang version (\d+\.\d+\.\d+)", _answer((*clang, "--version")))
    return match.group(1) if match else None


def _answer(argv: tuple[str, ...]) -> str:
    try:
        completed = run(argv, cwd=Path("/"), timeout_s=30.0, env={"PATH": "/usr/bin:/bin"})
    except UnusableEnvironment:
        return ""
    return completed.stdout.decode(errors="replace") if completed.returncode == 0 else ""
