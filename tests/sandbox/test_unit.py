"""The unit that is generated round a candidate."""

from __future__ import annotations

import pytest

from kernel_scientist.sandbox.compilation import BufferArgument, CompileRequest, EntryPoint, ScalarArgument
from kernel_scientist.sandbox.representations import KNOWN_TYPES, accepted_types, is_integer
from kernel_scientist.sandbox.unit import PlanMismatchError, generate_unit, restore_names

ENTRY = EntryPoint("scale", (BufferArgument("x", "float32", True), ScalarArgument("n", "int32")), 64)


def request(
    source: str = "", constants: tuple[tuple[str, str], ...] = (), kernel: str = "scale"
) -> CompileRequest:
    return CompileRequest(source, (EntryPoint(kernel, ENTRY.arguments, 64),), constants)


def test_the_candidates_text_is_included_as_it_is_for_a_gpu() -> None:
    source = "extern __shared__ float tile[];\n"
    unit = generate_unit(request(source), cpu=False)
    assert unit.kernel == source
    assert '#include "kernel.hip"' in unit.text


@pytest.mark.parametrize(
    "line",
    [
        "extern __shared__ float tile[];",
        "extern __shared__ __align__(16) float tile[];",
        "extern __align__(16) __shared__ float tile[];",
        "extern __attribute__((aligned(16))) __shared__ float tile[];",
        "extern alignas(16) __shared__ float tile[];",
        "extern float __shared__ tile[];",
        "extern\n  __shared__\n  float tile[];",
    ],
)
def test_dynamic_lds_gets_another_qualifier_on_the_cpu_and_columns_stay(line: str) -> None:
    unit = generate_unit(request(line), cpu=True)
    assert unit.dynamic_lds
    assert "__shared__" not in unit.kernel
    assert len(unit.kernel) == len(line)
    assert unit.kernel.count("\n") == line.count("\n")
    assert restore_names(unit.kernel) == line


@pytest.mark.parametrize(
    "line",
    [
        "__shared__ float tile[64];",
        'extern "C" __global__ void k();\n__shared__ int x;',
        "extern int y; __shared__ int x;",
    ],
)
def test_static_lds_keeps_its_qualifier(line: str) -> None:
    unit = generate_unit(request(line), cpu=True)
    assert unit.kernel == line
    assert not unit.dynamic_lds


def test_a_constant_is_a_macro_unless_a_template_parameter_has_its_name() -> None:
    source = "template <typename T, int TILE> __global__ void f();"
    text = generate_unit(request(source, (("TILE", "16"), ("DEPTH", "4"))), cpu=True).text
    assert "#define DEPTH 4" in text
    assert "constexpr auto TILE = (16);" in text


@pytest.mark.parametrize(
    ("constants", "kernel"),
    [
        ((("1A", "2"),), "scale"),
        ((("A", "1\n#include <x>"),), "scale"),
        ((("A", "1\\"),), "scale"),
        ((("KS_EXPORT", "1"),), "scale"),
        ((), "scale; int x"),
        ((), "scale)"),
        ((), 'scale<"a">'),
        ((), "scale<int>\n"),
        ((), ""),
    ],
)
def test_names_that_are_no_names_are_the_plans_fault(
    constants: tuple[tuple[str, str], ...], kernel: str
) -> None:
    with pytest.raises(PlanMismatchError, match="plan"):
        generate_unit(request("", constants, kernel), cpu=True)


@pytest.mark.parametrize("kernel", ["scale", "ns::scale", "scale<16, (4 > 2)>", "scale<float, A + 1>"])
def test_template_ids_are_names(kernel: str) -> None:
    assert f"KS_EXPORT(0, ({kernel}))" in generate_unit(request("", (), kernel), cpu=False).text


def test_integers_never_hold_a_float_buffer_but_bytes_hold_an_fp8_one() -> None:
    assert "int" not in accepted_types("float32")
    assert {"unsigned char", "__hip_fp8_e4m3_fnuz"} <= set(accepted_types("float8_e4m3fnuz"))
    assert "HIP_vector_type<float, 4>" in accepted_types("float32")
    assert set(accepted_types("bfloat16")) <= set(KNOWN_TYPES)
    assert is_integer("uint8") and not is_integer("float64")


def test_headers_come_before_the_constants_so_that_short_names_cannot_change_them() -> None:
    source = "#include <hip/hip_runtime.h>\n  # include <hipcub/hipcub.hpp>\n#include <hip/hip_runtime.h>\n"
    text = generate_unit(CompileRequest(source, (), (("N", "4"), ("T", "2"))), cpu=True).text
    assert text.count("#include <hip/hip_runtime.h>") == 1
    assert text.index("<hip/hip_runtime.h>") < text.index("<hipcub/hipcub.hpp>") < text.index("#define N 4")
    assert text.index("<ks/signature.h>") < text.index("#define T 2")
