"""From text to a code object or a reason, for the CPU and for MI300, with the compilers of this machine."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    CompileFailure,
    Compiler,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.compiler import open_compiler
from kernel_scientist.sandbox.processes import Limits

MATMUL = """#include <hip/hip_runtime.h>
template <int TILE>
__global__ void __launch_bounds__(TILE * TILE)
matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float sa[TILE][TILE], sb[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
  float sum = 0;
  for (int t = 0; t < k; t += TILE) {
    sa[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0;
    sb[y][x] = col < n && t + y < k ? b[(t + y) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; i++) sum += sa[y][i] * sb[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
__global__ void scale(float4* x, float factor, long n) {
  const long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""


def buffer(name: str, dtype: str = "float32") -> BufferArgument:
    return BufferArgument(name, dtype, True)


def number(name: str, dtype: str = "int32") -> ScalarArgument:
    return ScalarArgument(name, dtype)


TILED = EntryPoint(
    "matmul<TILE>", (buffer("a"), buffer("b"), buffer("c"), number("m"), number("n"), number("k")), 256
)
SCALE = EntryPoint("scale", (buffer("c"), number("2.0", "float32"), number("n", "int64")), 256)
TILE_16 = (("TILE", "16"),)


@pytest.fixture(params=["cpu", "gfx942"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    return open_compiler(request.param)


def compiled(compiler: Compiler, request: CompileRequest) -> CodeObject:
    outcome = compiler.compile(request)
    assert isinstance(outcome, CodeObject), outcome
    return outcome


def failure(compiler: Compiler, request: CompileRequest) -> CompileFailure:
    outcome = compiler.compile(request)
    assert isinstance(outcome, CompileFailure), outcome
    assert str(Path.home()) not in outcome.message + outcome.log
    assert "/" not in outcome.message.replace("#include", "").partition(":")[0]
    return outcome


def one_kernel(
    body: str, *arguments: BufferArgument | ScalarArgument, before: str = "", threads: int = 64
) -> CompileRequest:
    """A request for one kernel `k` with a float buffer `p` and an int `n`; its body starts on line 3."""
    source = f"#include <hip/hip_runtime.h> \n{before} __global__ void k(float* p, int n) {{\n{body}\n}}\n"
    return CompileRequest(source, (EntryPoint("k", arguments or (buffer("p"), number("n")), threads),))


def test_several_kernels_of_one_file_are_exported_in_the_order_of_the_request(compiler: Compiler) -> None:
    code = compiled(compiler, CompileRequest(MATMUL, (SCALE, TILED), TILE_16))
    assert [kernel.entry for kernel in code.kernels] == [SCALE, TILED]
    assert code.path.stat().st_size > 0
    assert code.arch == compiler.arch and code.compiler == compiler.name
    # LDS is counted per kernel, not per file.
    assert [kernel.static_lds_bytes for kernel in code.kernels] == [0, 2 * 16 * 16 * 4]


def test_the_same_request_is_compiled_once(tmp_path: Path) -> None:
    request = CompileRequest(MATMUL, (SCALE,), TILE_16)
    first = compiled(open_compiler("cpu", cache=tmp_path), request)
    again = compiled(open_compiler("cpu", cache=tmp_path), request)
    assert (first.cached, again.cached) == (False, True)
    assert (first.path, first.kernels, first.log) == (again.path, again.kernels, again.log)
    other = compiled(open_compiler("cpu", cache=tmp_path), replace(request, source=MATMUL + "// changed\n"))
    assert other.path != first.path and not other.cached


def test_a_damaged_build_is_made_again(tmp_path: Path) -> None:
    compiler = open_compiler("cpu", cache=tmp_path)
    request = CompileRequest(MATMUL, (SCALE,), TILE_16)
    path = compiled(compiler, request).path
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    again = compiled(compiler, request)
    assert not again.cached
    assert len(again.path.read_bytes()) == len(whole)


def test_both_architectures_compile_at_the_same_time_and_no_job_stays(tmp_path: Path) -> None:
    outcomes: list[CodeObject | CompileFailure] = []

    def work(arch: str, tile: str) -> None:
        compiler = open_compiler(arch, cache=tmp_path)
        outcomes.append(compiler.compile(CompileRequest(MATMUL, (TILED,), (("TILE", tile),))))

    jobs = [(arch, tile) for arch in ("cpu", "gfx942") for tile in ("16", "32", "16")]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(jobs)
    built = [outcome for outcome in outcomes if isinstance(outcome, CodeObject)]
    assert len({code.path for code in built}) == 4
    assert sum(not code.cached for code in built) == 4
    assert not list(tmp_path.glob("job-*"))


def test_a_kernel_needs_fibers_only_when_it_can_reach_a_barrier() -> None:
    source = MATMUL + (
        "__device__ __noinline__ float total(float x) {\n"
        "  for (int o = 32; o; o /= 2) x += __shfl_xor(x, o);\n  return x;\n}\n"
        "__global__ void sum(float* p) { p[threadIdx.x] = total(p[threadIdx.x]); }\n"
    )
    entries = (SCALE, TILED, EntryPoint("sum", (buffer("p"),), 64))
    code = compiled(open_compiler("cpu"), CompileRequest(source, entries, TILE_16))
    assert [kernel.needs_fibers for kernel in code.kernels] == [False, True, True]


@pytest.mark.parametrize(
    "declaration", ["extern __shared__ float tile[];", "HIP_DYNAMIC_SHARED(float, tile)"]
)
def test_dynamic_lds_links_and_counts_with_the_launch(compiler: Compiler, declaration: str) -> None:
    body = f"{declaration}\n tile[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = tile[n];"
    request = one_kernel(body)
    small = replace(request, entries=(replace(request.entries[0], dynamic_lds_bytes=1024),))
    assert compiled(compiler, small).kernels[0].static_lds_bytes == 0
    large = replace(request, entries=(replace(request.entries[0], dynamic_lds_bytes=65540),))
    refused = failure(compiler, large)
    assert refused.stage == "limits"
    assert "65540" in refused.message and "65536" in refused.message


# What is wrong with a source, and what the message must say of it.
BROKEN = {
    "an undeclared name": ("\n  p[0] = foo;", "kernel.hip:4:10: error: use of undeclared identifier 'foo'"),
    "a missing semicolon": ("p[0] = 1", "kernel.hip:3:9: error: expected ';'"),
    "an unknown function": ("p[0] = erff(p[0], 1, 2);", "kernel.hip:3:8: error: no matching function"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_compile_error_names_the_candidates_own_line(compiler: Compiler, what: str) -> None:
    body, says = BROKEN[what]
    broken = failure(compiler, one_kernel(body))
    assert broken.stage == "source"
    assert broken.message.startswith(says)
    assert says in broken.log


def test_an_error_inside_a_header_is_led_by_the_line_that_caused_it(compiler: Compiler) -> None:
    # A struct of 6 bytes cannot be exchanged or computed with in the headers' templates.
    body = "struct S { short a[3]; } s = {}, t = s; p[0] = float(max(s, t).a[0]);"
    assert failure(compiler, one_kernel(body)).message.startswith("kernel.hip:3:")


def test_a_function_that_nobody_defines_is_named_with_its_line(compiler: Compiler) -> None:
    broken = failure(compiler, one_kernel("p[0] = missing(n);", before="__device__ float missing(int);"))
    assert broken.stage == "source"
    assert broken.message == "kernel.hip:2: error: function 'missing' is declared but defined nowhere"


def test_an_open_comment_is_reported_and_hides_nothing(compiler: Compiler) -> None:
    request = CompileRequest(MATMUL + "/* no end", (SCALE,), TILE_16)
    assert "kernel.hip:21:1: error: unterminated /* comment" in failure(compiler, request).message


def test_messages_carry_no_control_characters_and_are_bounded(compiler: Compiler) -> None:
    hostile = "\n".join(f'#warning "\x1b[2J \u202e {i} {"x" * 500}"' for i in range(200))
    broken = failure(compiler, CompileRequest(f"{hostile}\nint x = y;\n", (SCALE,), TILE_16))
    assert "use of undeclared identifier 'y'" in broken.message
    assert all(c == "\n" or c == "\t" or c.isprintable() for c in broken.log + broken.message)
    assert len(broken.log) < 20_000 and len(broken.message) < 3_000


MISMATCHES = {
    "a name that is nearly right": (
        EntryPoint("matmull<TILE>", TILED.arguments, 256),
        "kernel 'matmull<TILE>' of the plan is not defined in the source; did you mean matmul?",
    ),
    "a name that is nowhere": (
        EntryPoint("conv", (), 256),
        "kernel 'conv' of the plan is not defined in the source; it defines matmul, scale",
    ),
    "too few arguments": (
        EntryPoint("scale", SCALE.arguments[:2], 256),
        "scale: the plan passes 2 arguments but the kernel takes 3",
    ),
    "a number for a pointer": (
        EntryPoint("scale", (number("m"), *SCALE.arguments[1:]), 256),
        "argument 1 of scale, 'm': the plan passes an int32 number but the kernel takes ",
    ),
    "a buffer for a number": (
        EntryPoint("scale", (buffer("c"), number("2", "float32"), buffer("a")), 256),
        "argument 3 of scale, 'a': the plan passes a float32 buffer but the kernel takes long",
    ),
    "an integer for a float": (
        EntryPoint("scale", (buffer("c"), number("2"), number("n")), 256),
        "argument 2 of scale, '2': the plan passes an int32 number but the kernel takes float",
    ),
    "a buffer of another type": (
        EntryPoint("matmul<TILE>", (buffer("a", "bfloat16"), *TILED.arguments[1:]), 256),
        "argument 1 of matmul<TILE>, 'a': the plan passes a bfloat16 buffer but the kernel takes const "
        "float*",
    ),
    "arguments for what is no template": (
        EntryPoint("scale<3>", SCALE.arguments, 256),
        "kernel 'scale<3>' of the plan: scale is not a template; write scale",
    ),
    "two arguments at once": (
        EntryPoint("scale", (number("m"), number("2", "float32"), buffer("a")), 256),
        "argument 1 of scale, 'm': the plan passes an int32 number but the kernel takes "
        "HIP_vector_type<float, 4>*; argument 3 of scale, 'a': ",
    ),
    "a template argument that is missing": (
        EntryPoint("matmul", TILED.arguments, 256),
        "kernel 'matmul' of the plan: matmul is a template; write its arguments too",
    ),
}


@pytest.mark.parametrize("what", MISMATCHES)
def test_a_plan_that_does_not_fit_the_source_is_told_in_the_plans_words(
    compiler: Compiler, what: str
) -> None:
    entry, says = MISMATCHES[what]
    mismatch = failure(compiler, CompileRequest(MATMUL, (SCALE, entry), TILE_16))
    assert mismatch.stage == "plan"
    assert mismatch.message.startswith(says)
    assert "KS_" not in mismatch.message


def test_a_device_function_is_no_kernel() -> None:
    source = MATMUL + "__device__ void helper(float* p) { *p = 1; }\n"
    request = CompileRequest(source, (EntryPoint("helper", (buffer("p"),), 64),), TILE_16)
    mismatch = failure(open_compiler("gfx942"), request)
    assert (mismatch.stage, mismatch.message) == ("plan", "helper of the plan is not a __global__ function")


# Types that may hold a dtype, and types that may not.
HOLDS = [
    ("float32", "float", True),
    ("float32", "const float4", True),
    ("float32", "int", False),
    ("float32", "double", False),
    ("float32", "void", True),
    ("float32", "Vec", True),
    ("float32", "Own", True),
    ("bfloat16", "unsigned short", True),
    ("bfloat16", "const ushort4", True),
    ("bfloat16", "__bf16", True),
    ("bfloat16", "_Float16", False),
    ("bfloat16", "Own", True),
    ("bfloat16", "Odd", False),
    ("float16", "_Float16", True),
    ("float16", "short", True),
    ("float16", "float", False),
    ("float8_e4m3fnuz", "unsigned char", True),
    ("float8_e4m3fnuz", "signed char", True),
    ("float8_e4m3fnuz", "unsigned", False),
    ("int32", "unsigned", True),
    ("int32", "int4", True),
    ("int32", "long long", False),
    ("int64", "long", True),
    ("uint8", "uchar4", True),
    ("float64", "double2", True),
    ("int32", "Kind", True),
]
TYPES = """#include <hip/hip_runtime.h>
typedef float Vec __attribute__((ext_vector_type(8)));
struct Own { char bytes[16]; };
struct Odd { char bytes[3]; };
enum Kind : int { first };
template <class T> __global__ void k(T* p) {}
"""


def test_a_buffer_may_be_taken_as_any_type_that_holds_its_elements() -> None:
    compiler = open_compiler("cpu")
    good = tuple(EntryPoint(f"k<{name}>", (buffer("p", dtype),), 64) for dtype, name, fits in HOLDS if fits)
    compiled(compiler, CompileRequest(TYPES, good))


def test_a_buffer_may_not_be_taken_as_another_type() -> None:
    bad = [(dtype, name) for dtype, name, fits in HOLDS if not fits]
    entries = tuple(EntryPoint(f"k<{name}>", (buffer("p", dtype),), 64) for dtype, name in bad)
    mismatch = failure(open_compiler("cpu"), CompileRequest(TYPES, entries))
    assert mismatch.stage == "plan"
    dtype, name = bad[0]
    assert (
        f"argument 1 of k<{name}>, 'p': the plan passes a {dtype} buffer but the kernel takes "
        in mismatch.message
    )
    for number in range(len(bad)):
        assert f"KS_PLAN argument {number} 0 " in mismatch.log, bad[number]


def test_lds_beyond_a_compute_units_is_refused(compiler: Compiler) -> None:
    refused = failure(compiler, CompileRequest(MATMUL, (replace(TILED, threads=1024),), (("TILE", "100"),)))
    assert refused.stage == "limits"
    assert "80000 bytes" in refused.message and "65536" in refused.message


def test_more_threads_than_a_block_or_its_bounds_allow_are_refused(compiler: Compiler) -> None:
    refused = failure(compiler, CompileRequest(MATMUL, (replace(SCALE, threads=1025),), TILE_16))
    assert (refused.stage, "1025 threads" in refused.message) == ("limits", True)
    if compiler.arch != "cpu":
        bounded = failure(compiler, CompileRequest(MATMUL, (replace(TILED, threads=512),), TILE_16))
        assert "__launch_bounds__ allows 256" in bounded.message


def test_a_source_of_a_megabyte_is_refused(compiler: Compiler) -> None:
    request = CompileRequest("//" + "x" * (1 << 20), (SCALE,), TILE_16)
    assert failure(compiler, request).stage == "limits"


def test_an_endless_compile_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_scientist.sandbox.compile_step.TIMEOUT_S", 0.5)
    doubling = (
        "template <int N, long M> struct F {\n"
        "  static constexpr long v = F<N - 1, 2 * M>::v ^ F<N - 1, 2 * M + 1>::v;\n};\n"
        "template <long M> struct F<0, M> { static constexpr long v = M; };\n"
        "static_assert(F<30, 0>::v == 1);\n"
    )
    stopped = failure(open_compiler("cpu"), CompileRequest(doubling, ()))
    assert (stopped.stage, stopped.message) == ("limits", "The compiler was stopped after 0.5 s.")


def test_a_compile_that_wants_all_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(memory_bytes=600 << 20)
    monkeypatch.setattr("kernel_scientist.sandbox.compile_step.LIMITS", limits)
    source = "int big[1 << 28] = {[0 ... (1 << 28) - 1] = 1};"
    stopped = failure(open_compiler("cpu"), CompileRequest(source, ()))
    assert stopped.stage == "limits"
    assert "GiB" in stopped.message
