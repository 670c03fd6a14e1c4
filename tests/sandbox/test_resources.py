"""What the MI300 compiler makes of a kernel: registers, LDS, scratch, occupancy, instructions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist.sandbox.assembly import count_instructions, entry_symbols, reads_files
from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.compile_step import INCLUDE
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.occupancy import occupancy
from kernel_scientist.sandbox.processes import run
from kernel_scientist.sandbox.resources import KernelResources
from kernel_scientist.sandbox.toolchain import find_toolchain

P = BufferArgument("p", "float32", True)
N = ScalarArgument("n", "int32")

# The registers held across the loop grow with R, LDS with L (in words), the block with T.
PRESSURE = """#include <hip/hip_runtime.h>
template <int R, int L, int T> __global__ void __launch_bounds__(T) pressure(float* p, int n) {
  __shared__ float lds[L > 0 ? L : 1];
  float v[R];
  for (int i = 0; i < R; i++) v[i] = p[i * 1024 + threadIdx.x];
  for (int j = 0; j < n; j++) {
    if constexpr (L > 0) {
      lds[threadIdx.x % L] = v[0];
      __syncthreads();
      v[R - 1] += lds[(threadIdx.x + j) % L];
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < R; i++) v[i] = v[i] * v[(i + 7) % R] + v[(i + 31) % R];
  }
  for (int i = 0; i < R; i++) p[i * 1024 + threadIdx.x] = v[i];
}
"""
CASES = [
    (8, 0, 256),
    (8, 0, 64),
    (40, 0, 256),
    (90, 0, 256),
    (8, 2304, 256),
    (8, 8192, 512),
    (8, 15000, 256),
    (60, 3000, 192),
]


def report(source: str, *entries: EntryPoint, arch: str = "gfx942") -> list[KernelResources]:
    outcome = open_compiler(arch).compile(CompileRequest(source, entries))
    assert isinstance(outcome, CodeObject), outcome
    resources = [kernel.resources for kernel in outcome.kernels]
    assert all(resources)
    return [entry for entry in resources if entry is not None]


def test_the_occupancy_formula_agrees_with_the_compilers_own_figure() -> None:
    entries = [EntryPoint(f"pressure<{r}, {lds}, {t}>", (P, N), t) for r, lds, t in CASES]
    ours = [(found.occupancy, found.kernel) for found in report(PRESSURE, *entries)]
    theirs = list(zip(compilers_occupancy(entries), [entry.kernel for entry in entries], strict=True))
    assert ours == theirs
    assert len({waves for waves, _ in ours}) >= 4, "the cases should differ"


def compilers_occupancy(entries: list[EntryPoint]) -> list[int]:
    """From the comments that clang writes into the assembly, which know no dynamic LDS."""
    toolchain = find_toolchain("gfx942")
    forced = "".join(f"__device__ auto use{i} = &{entry.kernel};\n" for i, entry in enumerate(entries))
    paths = [INCLUDE / "amdgpu", INCLUDE / "common", INCLUDE, toolchain.include]
    argv = [
        *toolchain.clang, "-x", "hip", "--cuda-device-only", "--offload-arch=gfx942", "-std=c++20", "-O3",
        "-fdeclspec", "-nogpuinc", "-nogpulib", "-nostdinc", *(f"-isystem{path}" for path in paths),
        "-S", "-", "-o", "-",
    ]  # fmt: skip
    completed = run(argv, cwd=Path("/"), timeout_s=60.0, input=(PRESSURE + forced).encode())
    assert completed.returncode == 0, completed.stderr.decode()
    text = completed.stdout.decode()
    symbols = re.findall(r"\.amdhsa_kernel (\S+)", text)
    figures = [int(figure) for figure in re.findall(r"; Occupancy: (\d+)", text)]
    by_numbers = dict(
        zip([tuple(map(int, re.findall(r"Li(\d+)E", s))) for s in symbols], figures, strict=True)
    )
    return [by_numbers[case] for case in CASES]


@pytest.mark.parametrize(
    ("usage", "waves", "limit"),
    [
        # 512 registers a lane over 8 waves leave 64.
        ({"registers": 64}, 8, "hardware"),
        ({"registers": 65}, 7, "vgprs"),
        ({"registers": 128}, 4, "vgprs"),
        ({"registers": 512, "threads": 256}, 1, "vgprs"),
        # 65536 bytes hold 7 blocks of 9216, each of 4 waves, on 4 SIMDs.
        ({"lds_bytes": 9216}, 7, "lds"),
        ({"lds_bytes": 65536}, 1, "lds"),
        ({"lds_bytes": 65536, "threads": 1024}, 4, "lds"),
        # Three blocks of 10 waves are 30 of 32 waves; a fourth does not fit whole.
        ({"threads": 640}, 8, "hardware"),
        ({"threads": 704}, 6, "block size"),
        # At most 16 blocks of more than one wave; blocks of one wave are not held back by that.
        ({"threads": 128}, 8, "hardware"),
        ({"threads": 64}, 8, "hardware"),
        ({"scalars": 106}, 7, "sgprs"),
    ],
)
def test_what_limits_occupancy_is_named(usage: dict[str, int], waves: int, limit: str) -> None:
    defaults = {"registers": 8, "scalars": 16, "lds_bytes": 0, "threads": 256}
    found = occupancy("gfx942", **{**defaults, **usage})
    assert (found.waves, found.limited_by) == (waves, limit)


def test_dynamic_lds_and_the_launched_block_size_enter_the_report() -> None:
    source = "#include <hip/hip_runtime.h>\nextern __shared__ float tile[];\n" + (
        "__global__ void k(float* p) {\n"
        "  tile[threadIdx.x] = p[0]; __syncthreads(); p[threadIdx.x] = tile[1];\n}\n"
    )
    entry = EntryPoint("k", (P,), 64)
    (none,) = report(source, entry)
    (some,) = report(source, replace(entry, dynamic_lds_bytes=16384))
    (wide,) = report(source, replace(entry, dynamic_lds_bytes=16384, threads=1024))
    assert (none.lds_bytes, none.occupancy, none.limited_by) == (0, 8, "hardware")
    assert (some.lds_bytes, some.occupancy, some.limited_by) == (16384, 1, "lds")
    assert (wide.occupancy, wide.limited_by) == (8, "hardware")


def test_spills_and_scratch_are_reported() -> None:
    (found,) = report(PRESSURE, EntryPoint("pressure<200, 0, 1024>", (P, N), 1024))
    assert found.vgprs + found.agprs <= 128
    assert found.vgpr_spills > 0
    assert found.scratch_bytes > 0
    assert found.instructions["scratch"] > 0
    (other,) = report(PRESSURE, EntryPoint("pressure<8, 0, 1024>", (P, N), 1024))
    assert (other.vgpr_spills, other.scratch_bytes, other.instructions["scratch"]) == (0, 0, 0)


MATRIX = """#include <hip/hip_runtime.h>
typedef float f32x16 __attribute__((ext_vector_type(16)));
__global__ void __launch_bounds__(256) mfma(const unsigned char* a, const unsigned char* b, float* c, int n) {
  __shared__ long tile[256];
  f32x16 sum = {};
  for (int k = 0; k < n; k++) {
    tile[threadIdx.x] = ((const long*)a)[k * 256 + threadIdx.x];
    __syncthreads();
    const long part = tile[threadIdx.x ^ 1];
    sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(part, ((const long*)b)[k], sum, 0, 0, 0);
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) c[threadIdx.x * 16 + i] = sum[i];
  atomicAdd(c, __shfl_xor(sum[0], 1));
}
"""


def test_instructions_are_counted_by_what_they_do() -> None:
    fp8 = "float8_e4m3fnuz"
    arguments = (BufferArgument("a", fp8, False), BufferArgument("b", fp8, False), P, N)
    (found,) = report(MATRIX, EntryPoint("mfma", arguments, 256))
    counts = found.instructions
    for group in (
        "mfma",
        "global_load",
        "global_store",
        "lds_read",
        "lds_write",
        "lds_shuffle",
        "atomic",
        "barrier",
    ):
        assert counts[group] >= 1, group
    assert counts["valu"] > 0 and counts["salu"] > 0 and counts["waitcnt"] > 0 and counts["branch"] > 0
    assert found.lds_bytes == 2048


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_the_neighbouring_architectures_are_reported_too(arch: str) -> None:
    (found,) = report(PRESSURE, EntryPoint("pressure<8, 2304, 256>", (P, N), 256), arch=arch)
    assert found.arch == arch
    # 160 KiB of LDS on gfx950 do not limit what 64 KiB do.
    assert (found.occupancy, found.limited_by) == ((7, "lds") if arch == "gfx90a" else (8, "hardware"))


ASSEMBLY = """\
first:                                  ; @first
; %bb.0:
\ts_load_dwordx2 s[0:1], s[0:1], 0x0
.LBB0_1:
\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
\tglobal_atomic_add_f32 v0, v1, s[0:1]
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
.Lfunc_end0:
second:
\tds_read_b128 v[0:3], v4
\tds_bpermute_b32 v0, v1, v2
\ts_barrier
ks_entry_0:
\t.quad\tsecond
ks_entry_1: ; comment
\t.quad\tfirst
"""


def test_counts_stop_at_the_end_of_a_function() -> None:
    first, second = count_instructions(ASSEMBLY, "first"), count_instructions(ASSEMBLY, "second")
    assert (first["mfma"], first["atomic"], first["branch"], first["lds_read"]) == (1, 1, 1, 0)
    assert (second["lds_read"], second["lds_shuffle"], second["barrier"], second["mfma"]) == (1, 1, 1, 0)
    assert first["salu"] == 2


def test_exported_kernels_are_found_by_their_numbers() -> None:
    assert entry_symbols(ASSEMBLY) == {0: "second", 1: "first"}


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ('\t.incbin "/etc/passwd"\n', True),
        ('s_nop 0 ; .include "x"\n', True),
        ('\ts_nop 0\n.INCLUDE "x"', True),
        ('.macro read what\n.\\what "x"\n.endm\nread incbin\n', True),
        ("\t.section .text.included\n", False),
    ],
)
def test_directives_that_read_files_are_found(text: str, reads: bool) -> None:
    assert reads_files(text) is reads
