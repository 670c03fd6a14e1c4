"""The text rules: files of the host are refused, words never are."""

from __future__ import annotations

import pytest

from kernel_scientist.tools.policy import policy_violation
from kernel_scientist.tools.text import clean


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "other.h"',
        "#include <hip/../../../etc/passwd>",
        "#include <fstream>",
        "#include HEADER",
        "  #  include_next <hip/hip_runtime.h>",
        "%:include <vector>",
        '#/* hidden */include "x"',
        "#inc\\\nlude <vector>",
        '#embed "/etc/passwd"',
        'const char data[] = {\n#embed "/etc/passwd"\n};',
        'asm(".incbin \\"/etc/passwd\\"");',
        "__asm__ volatile(\"nop\\n.IncBin '/etc/hostname'\");",
        'asm(R"(.incbin "/etc/passwd")");',
    ],
)
def test_files_of_the_host_are_refused(line: str) -> None:
    violation = policy_violation(f"#include <hip/hip_runtime.h>\n\n{line}\n")
    assert violation is not None
    assert violation.startswith(("line 3", "line 4"))


@pytest.mark.parametrize(
    "line",
    ['#line 7 "/etc/hosts"', '# 7 "/etc/hosts" 3', "%: line 7", "#/**/line 7", "#li\\\nne 7", "#\tline\t7"],
)
def test_text_that_moves_the_compilers_places_is_refused(line: str) -> None:
    violation = policy_violation(f"\n{line}\nint a b;")
    assert violation is not None
    assert violation.startswith("line 2: ") and "misplace" in violation


@pytest.mark.parametrize(
    "text",
    [
        '#define line 1\n#pragma line\n// #line 7\nint line = __LINE__; /*\n# 7 "x"\n*/',
        "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n#include <stdint.h>\n#include <cstdint>",
        "// stream, time, exit, cache, fork, system, popen, socket",
        '/* #include <fstream>\n#include "/etc/passwd" */',
        "// #include <vector>",
        "__device__ float exit_time(float stream) { return stream; }",
        "int n = 1'000'000; // don't",
        "#include <hip/hip_runtime.h> // the only one we need\r\n",
        'asm volatile("" ::: "memory");',
        "// größer als ½",
        "#pragma unroll 4\n#define INCLUDE 1\n#if INCLUDE\n#endif",
        "// the assembler's .incbin is not used here",
        "// a comment goes on \\\n#include <vector>\n",
    ],
)
def test_honest_text_passes(text: str) -> None:
    assert policy_violation(text) is None


def test_a_very_long_source_is_read_quickly() -> None:
    assert policy_violation("float x = 1.0f; // '\"\n" * 50_000) is None


def test_cleaned_text_cannot_steer_a_terminal() -> None:
    assert clean("a\x1b[2Jb\u202ec\x00d\te\n") == "ab\ufffdc\ufffdd\te\n"


def test_cleaned_text_is_bounded_and_says_what_is_missing() -> None:
    text = clean("x" * 10_000, 1000)
    assert len(text) <= 1000
    assert "characters left out" in text
