"""A kernel as one HIP file: device code, a launcher, and a main that checks and times it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..dtypes import is_float, itemsize
from ..expressions import Expression
from ..kernel import Kernel
from ..problem import Problem
from .cpp import Translation, translate
from .device_code import device_lines, header_lines
from .launcher import Launcher
from .names import Names, identifier, parameter_kind, parameter_type, pointer_type
from .portfolio import Portfolio, build_portfolio
from .provenance import Exported, Provenance, comment_lines
from .vectors import Vectors, few_vectors, vectors_mark

__all__ = ["export_hip"]

_PARTS = Path(__file__).parent / "parts"
_HEADERS = (
    "algorithm", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring", "string", "type_traits",
    "vector",
)  # fmt: skip
_PER_LINE = 96


def export_hip(kernel: Kernel, problem: Problem, provenance: Provenance) -> Exported:
    """The file's text, which compiles with hipcc alone.

    Raises PlanError where the kernel cannot be exported, ProblemError where reference.py fails.
    """
    portfolio = build_portfolio(kernel, problem)
    names = Names(problem, kernel)
    launcher = Launcher(kernel, problem, portfolio.variants, names)
    vectors = few_vectors(problem)
    space = f"{identifier(problem.name)}_kernel"
    guard = f"{space.upper()}_DEVICE_CODE"
    before, builds = device_lines(kernel, portfolio.variants, guard)
    lines = [
        *comment_lines(_head(problem, space, launcher, provenance, portfolio, vectors), "//"),
        *before,
        *header_lines(kernel),
        *(f"#include <{header}>" for header in _HEADERS),
        "",
        f"namespace {space} {{",
        "",
        *builds,
        *_part("arithmetic"),
        *_part("launching"),
        *(_part("filling") if kernel.plan.scratch else []),
        *launcher.lines(),
        "",
        f"}}  // namespace {space}",
        "",
        f"#ifndef {space.upper()}_NO_MAIN",
        f"namespace {space} {{",
        "",
        *_part("tables"),
        *_tables(problem, vectors),
        *_questions(problem, names, with_workspace=bool(kernel.plan.scratch)),
        "",
        *_part("checking"),
        *_part("timing"),
        f"}}  // namespace {space}",
        "",
        f"int main(int argc, char** argv) {{ return {space}::check_and_time(argc, argv); }}",
        "#endif",
        *([f"#endif  // {guard}"] if before else []),
    ]
    return Exported(
        "\n".join(lines) + "\n",
        len(portfolio.variants),
        vectors.names,
        f"Build it with: {_command('FILE', problem)}",
    )


def _command(file: str, problem: Problem) -> str:
    return f"hipcc -O3 -std=c++20 --offload-arch=gfx942 {file} -o {identifier(problem.name)}"


def _part(name: str) -> list[str]:
    return [*(_PARTS / f"{name}.h").read_text(encoding="utf-8").splitlines(), ""]


def _head(
    problem: Problem,
    space: str,
    launcher: Launcher,
    provenance: Provenance,
    portfolio: Portfolio,
    vectors: Vectors,
) -> list[str]:
    """What a reader must know before anything else."""
    program = identifier(problem.name)
    lines = [
        f"{problem.title}. Exported by kernel-scientist {provenance.version}: {provenance.source}.",
        *provenance.measured,
        "",
        _command("THIS_FILE", problem),
        f"./{program}          checks itself against test vectors, then times itself; --help lists options",
        "",
        f"In your own build: define {space.upper()}_NO_MAIN, include this file, and call",
        f"{space}::launch({', '.join(launcher.parameters())}).",
        *(_buffer_sentence(problem, name) for name in (buffer.name for buffer in problem.buffers)),
        f"Shapes: {_domain(problem)}.",
        f"Test vectors in this file: {'; '.join(vectors.names) or 'none'}.",
    ]
    if vectors.left_out:
        lines.append(
            f"Test shapes too large for this file: {len(vectors.left_out)} (--vectors FILE reads more)."
        )
    if len(portfolio.variants) > 1:
        lines.append(f"{len(portfolio.variants)} builds: constants of the plan depend on the shape.")
    if portfolio.left_out:
        lines.append(
            f"Shapes of {portfolio.left_out} further builds are refused: export with such shapes listed."
        )
    return [*lines, "The kernel's own text, launch plan first, follows below as it was.", ""]


def _buffer_sentence(problem: Problem, name: str) -> str:
    buffer = problem.buffer(name)
    extents = ", ".join(item.text for item in buffer.shape)
    order = "column-major" if buffer.order == "F" else "row-major"
    return f"  {name}: {buffer.role}, {buffer.dtype} [{extents}], {order}"


def _domain(problem: Problem) -> str:
    return ", ".join(
        f"{name} from {one.min} to {one.max}"
        + (f" in steps of {one.multiple_of}" if one.multiple_of > 1 else "")
        for name, one in problem.domain.items()
    )


def _tables(problem: Problem, vectors: Vectors) -> list[str]:
    rows = [
        f"    {{{_quoted(buffer.name)}, Kind::{buffer.dtype if is_float(buffer.dtype) else 'integer'}, "
        f"{itemsize(buffer.dtype)}, {str(buffer.role == 'output').lower()}}},"
        for buffer in problem.buffers
    ]
    text = base64.b64encode(vectors.data).decode()
    return [
        f"constexpr int kDimensions = {len(problem.domain)}, kBuffers = {len(problem.buffers)};",
        f"const char* const kTitle = {_quoted(problem.name)};",
        f"const char* const kVectorsMark = {_quoted(vectors_mark(problem))};",
        f"const char* const dimension_names[] = {{{', '.join(_quoted(name) for name in problem.domain)}}};",
        "const Buffer buffers[] = {",
        *rows,
        "};",
        "const int timed_shapes[][kDimensions] = {",
        *(f"    {{{', '.join(str(shape[name]) for name in problem.domain)}}}," for shape in _timed(problem)),
        "};",
        "const char* const kVectors =",
        *(f'    "{text[at : at + _PER_LINE]}"' for at in range(0, len(text), _PER_LINE)),
        "    ;",
        "",
    ]


def _timed(problem: Problem) -> Sequence[Mapping[str, int]]:
    """The shapes of the GPU class, where the problem lists any."""
    return problem.shapes["mi300" if "mi300" in problem.shapes else "cpu"].benchmarks


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _questions(problem: Problem, names: Names, *, with_workspace: bool) -> list[str]:
    """What the checking part asks about a shape: sizes, work, and to run the plan."""
    known = names.translations(dict.fromkeys(problem.domain, "integer"))
    extents = [
        f"  [[maybe_unused]] const Integer {names[name]} = shape[{place}];"
        for place, name in enumerate(problem.domain)
    ]

    def product(parts: Sequence[Expression]) -> str:
        return " * ".join(translate(part, known).integer_operand for part in parts)

    counts = [f"  counts[{place}] = {product(buffer.shape)};" for place, buffer in enumerate(problem.buffers)]
    scalars = list(_scalar_values(problem, known))
    pointers = [f"static_cast<{kind}>(pointers[{place}])" for place, kind in enumerate(_pointers(problem))]
    passed = [
        *pointers,
        *scalars,
        *([f"pointers[{len(problem.buffers)}]"] if with_workspace else []),
        "stream",
    ]
    workspace = f"workspace_bytes({', '.join(scalars)})" if with_workspace else "0"
    return [
        "inline bool count_elements(const int* shape, std::size_t* elements) {",
        *extents,
        f"  Integer counts[{len(problem.buffers)}];",
        *counts,
        "  for (const Integer& one : counts) {",
        "    if (!(one >= 0)) return false;",
        "    *elements++ = static_cast<std::size_t>(one.value);",
        "  }",
        "  return true;",
        "}",
        "inline std::size_t workspace_of([[maybe_unused]] const int* shape) {",
        *(extents if with_workspace else []),
        f"  return {workspace};",
        "}",
        "inline double flops_of(const int* shape) {",
        *extents,
        f"  return {translate(problem.flops, known).real};",
        "}",
        "inline double bytes_of(const int* shape) {",
        *extents,
        f"  return {translate(problem.bytes, known).real};",
        "}",
        "inline hipError_t run_plan(const int* shape, void* const* pointers, hipStream_t stream) {",
        *extents,
        f"  return launch({', '.join(passed)});",
        "}",
    ]


def _scalar_values(problem: Problem, known: Mapping[str, Translation]) -> Iterator[str]:
    for scalar in problem.scalars:
        kind = parameter_kind(scalar.dtype)
        text = translate(scalar.value, known).typed(kind)
        number = text if kind == "real" else f"Integer({text}).value"
        yield f"static_cast<{parameter_type(scalar.dtype)}>({number})"


def _pointers(problem: Problem) -> list[str]:
    return [
        f"{'const ' if buffer.role == 'input' else ''}{pointer_type(buffer.dtype)}*"
        for buffer in problem.buffers
    ]
