"""One compiler or linker command on text that nobody trusts, in a cage and with limits.

Covered: time, memory, size of output and files; reading the host's files (by the cage, and by a check of what
the compiler says it has read). Not covered without a cage: a file that inline assembly reads in a GPU build
is found only afterwards, in the assembly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .cage import Cage, select_cage
from .compilation import CompileRequest
from .diagnostics import LOG_LIMIT, clean_output, diagnose
from .processes import Completed, Limits, run
from .toolchain import Toolchain
from .unit import KERNEL_FILE, Unit

__all__ = ["INCLUDE", "BuildError", "Workbench"]

INCLUDE = Path(__file__).parent / "include"

TIMEOUT_S = 60.0
_MEMORY_GIB = 4
LIMITS = Limits(memory_bytes=_MEMORY_GIB << 30, cpu_s=90, file_bytes=256 << 20, output_bytes=1 << 18)

Stage = Literal["plan", "source", "limits"]


class BuildError(Exception):
    """The source did not become a code object; the fields are those of `CompileFailure`."""

    def __init__(self, stage: Stage, message: str, log: str) -> None:
        super().__init__(message)
        self.stage: Stage = stage
        self.message = message
        self.log = log


@dataclass(frozen=True, slots=True)
class Workbench:
    """The folder of one build, and the tools that may work in it."""

    toolchain: Toolchain
    cage: Cage | None
    job: Path
    request: CompileRequest
    unit: Unit

    def __post_init__(self) -> None:
        (self.job / KERNEL_FILE).write_text(self.unit.kernel, encoding="utf-8", errors="replace")
        (self.job / "unit.cpp").write_text(self.unit.text, encoding="utf-8", errors="replace")

    def compile(self, arguments: Sequence[str]) -> str:
        """Run clang; the cleaned output is returned. Raises `BuildError`."""
        return self._run((*self.toolchain.clang, *arguments), [INCLUDE])

    def link(self, arguments: Sequence[str], readable: Sequence[Path] = ()) -> str:
        """Run the linker; the cleaned output is returned. Raises `BuildError`."""
        return self._run((*self.toolchain.lld, *arguments), readable)

    def check_dependencies(self, file: str) -> None:
        """Refuse the build when the compiler read a file that is no header of ours or of the compiler."""
        folders = (self.job, INCLUDE, self.toolchain.include, *self._system_headers())
        allowed = [folder.resolve() for folder in folders]
        try:
            text = (self.job / file).read_text(errors="replace").replace("\\\n", " ")
        except FileNotFoundError:
            # clang writes none, and says nothing, when `#embed` names a file that it cannot read.
            reason = f"{KERNEL_FILE}: error: a file that it embeds was not found"
            raise BuildError("source", reason, "") from None
        for name in re.split(r"(?<!\\)\s+", text.partition(":")[2].strip()):
            path = (self.job / name.replace("\\ ", " ")).resolve()
            if not any(path.is_relative_to(folder) for folder in allowed):
                reason = f"{KERNEL_FILE}: error: '{name}' is a file outside the kernel's reach"
                raise BuildError("source", reason, "")

    def _run(self, argv: Sequence[str], extra: Sequence[Path]) -> str:
        readable = [*extra, self.toolchain.root, *self._system_folders()]
        cage = self.cage or select_cage()
        caged = cage.wrap_command(argv, readable=readable, writable=[self.job])
        job = str(self.job)
        environment = {"TMPDIR": job, "HOME": job, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        completed = run(caged, cwd=self.job, timeout_s=TIMEOUT_S, limits=LIMITS, env=environment)
        ours = [INCLUDE, *(INCLUDE / name for name in ("common", "cpu", "amdgpu"))]
        log = clean_output(completed.stderr, [self.job, self.toolchain.root, *ours])
        if completed.timed_out:
            reason = f"The compiler was stopped after {TIMEOUT_S:g} s."
            raise BuildError("limits", reason, log[:LOG_LIMIT])
        if completed.returncode == 0:
            return log[:LOG_LIMIT]
        if len(completed.stderr) >= LIMITS.output_bytes and "-w" not in argv:
            # So many warnings that the errors are not among what was kept.
            return self._run([*argv, "-w"], extra)
        raise self._failure(completed, log)

    def _failure(self, completed: Completed, log: str) -> BuildError:
        diagnosis = diagnose(log, self.request.entries, self.request.source)
        log = log[:LOG_LIMIT]
        if diagnosis.found:
            return BuildError(diagnosis.stage, diagnosis.message, log)
        if re.search(r"^LLVM ERROR: out of memory|std::bad_alloc", log, re.MULTILINE):
            return BuildError("limits", f"The compiler needed more than {_MEMORY_GIB} GiB.", log)
        if completed.returncode < 0 or completed.returncode >= 128:
            return BuildError("source", "The compiler crashed on this source.", log)
        return BuildError(diagnosis.stage, diagnosis.message, log)

    def _system_folders(self) -> list[Path]:
        """What a compiler of the system's own needs to start; zig is one static program."""
        if self.toolchain.kind == "zig":
            return []
        folders = map(Path, ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"))
        return [folder for folder in folders if folder.exists()]

    def _system_headers(self) -> list[Path]:
        if self.toolchain.rocm is None:
            return []
        return [self.toolchain.root, Path("/usr/include"), Path("/usr/lib/gcc"), Path("/usr/local/include")]
