"""What a candidate tries in order to read this machine's files while it is compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import BufferArgument, CompileFailure, CompileRequest, EntryPoint
from kernel_scientist.sandbox.compiler import open_compiler

KERNEL = "#include <hip/hip_runtime.h>\n__global__ void k(float* p) { p[0] = %s; }\n"
ENTRY = EntryPoint("k", (BufferArgument("p", "float32", True),), 64)


@pytest.fixture(params=["best", "none"])
def cage(request: pytest.FixtureRequest) -> Cage:
    """What holds without any cage is held by checks of our own."""
    return select_cage() if request.param == "best" else Cage("none", "", "for this test")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("12345\n")
    return path


def attempts(secret: Path) -> dict[str, str]:
    value = KERNEL % "value[0]"
    return {
        "include": f'static const int value[] = {{\n#include "{secret}"\n}};\n' + value,
        "include by a relative path": (
            f'static const int value[] = {{\n#include "../../../../../../../../../..{secret}"\n}};\n' + value
        ),
        "embed": f'static const unsigned char value[] = {{\n#embed "{secret}"\n}};\n' + value,
        "assembly in a kernel": KERNEL % f'0; asm volatile(".incbin \\"{secret}\\"")',
    }


@pytest.mark.parametrize("arch", ["cpu", "gfx942"])
@pytest.mark.parametrize("way", ["include", "include by a relative path", "embed", "assembly in a kernel"])
def test_a_file_of_this_machine_cannot_be_compiled_in(
    way: str, arch: str, cage: Cage, secret: Path, tmp_path: Path
) -> None:
    compiler = open_compiler(arch, cache=tmp_path / "cache", cage=cage)
    source = attempts(secret)[way].replace(
        "static const", "static __device__ const" if arch != "cpu" else "static const"
    )
    if arch != "cpu":
        source = "#include <hip/hip_runtime.h>\n" + source
    outcome = compiler.compile(CompileRequest(source, (ENTRY,)))
    assert isinstance(outcome, CompileFailure)
    assert outcome.stage == "source"
    assert "12345" not in outcome.message + outcome.log


def test_assembly_outside_functions_does_not_reach_the_cpu_image(
    cage: Cage, secret: Path, tmp_path: Path
) -> None:
    compiler = open_compiler("cpu", cache=tmp_path / "cache", cage=cage)
    source = KERNEL % "1" + f'asm(".incbin \\"{secret}\\"");\n'
    outcome = compiler.compile(CompileRequest(source, (ENTRY,)))
    assert isinstance(outcome, CompileFailure)
    assert "kernel.hip:3:1: error: GNU-style inline assembly is disabled" in outcome.message


def test_an_empty_assembly_statement_is_a_fence_and_stays_allowed() -> None:
    source = KERNEL % '1; asm volatile("" ::: "memory")'
    for arch in ("cpu", "gfx942"):
        assert not isinstance(open_compiler(arch).compile(CompileRequest(source, (ENTRY,))), CompileFailure)
