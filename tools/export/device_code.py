"""The kernel's text within the exported HIP file: its headers, and one namespace per build of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel_scientist.sandbox.unit import constant_lines

from ..errors import PlanError
from ..kernel import Kernel
from .portfolio import Variant

__all__ = ["device_lines", "header_lines", "variant_name"]

_INCLUDE = re.compile(r"^([ \t]*#[ \t]*include[ \t]*<([^>\n]+)>[^\n]*)$", re.MULTILINE)
_ONCE = re.compile(r"^([ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*)$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_LINKAGE = re.compile(r'\bextern\s+"C"')


def variant_name(index: int) -> str:
    return f"build_{index}"


def header_lines(kernel: Kernel) -> list[str]:
    """The headers that the kernel's text includes anywhere, hip_runtime.h first."""
    names = [found[2].strip() for found in _INCLUDE.finditer(kernel.source)]
    own = next((name for name in names if name.startswith("ks/")), None)
    if own is not None:
        message = f"includes <{own}>, which ROCm has not; write what it is used for without it"
        raise PlanError(message, path=kernel.path)
    lines = ["#include <hip/hip_runtime.h>"]
    for name in dict.fromkeys(names):
        if name != "hip/hip_runtime.h":
            # It may have stood under a condition that never holds where the header is missing.
            lines += [f"#if __has_include(<{name}>)", f"#include <{name}>", "#endif"]
    return lines


def device_lines(kernel: Kernel, variants: Sequence[Variant], guard: str) -> tuple[list[str], list[str]]:
    """What stands before everything else in the file, and the namespaces with the builds.

    With several builds the text stands once, at the file's head, and the file includes itself per build.
    """
    text = _text(kernel)
    builds: list[str] = []
    for index, variant in enumerate(variants):
        body = text.split("\n") if len(variants) == 1 else ["#include __FILE_NAME__"]
        builds += _build(kernel, index, variant, body, guard if len(variants) > 1 else None)
    if len(variants) == 1:
        return [], builds
    if _LINKAGE.search(text):
        message = (
            'has extern "C", and constants that depend on the shape make several builds; remove extern "C"'
        )
        raise PlanError(message, path=kernel.path)
    return [f"#ifdef {guard}", *text.split("\n"), f"#else  // {guard}"], builds


def _text(kernel: Kernel) -> str:
    """The kernel's text with its headers left to the top of the file; lines keep their numbers."""
    text = kernel.source.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")
    return _ONCE.sub(r"// \1", _INCLUDE.sub(r"// \1", text))


def _build(kernel: Kernel, index: int, variant: Variant, body: list[str], guard: str | None) -> list[str]:
    names = [name for name, _ in variant.macros]
    macros = [*names, *_DEFINED.findall(_text(kernel))]
    lines = [
        f"namespace {variant_name(index)} {{",
        *constant_lines(variant.macros, kernel.source),
        *([f"#define {guard}"] if guard else []),
        *body,
        *([f"#undef {guard}"] if guard else []),
    ]
    for number in sorted(variant.launches):
        name = kernel.plan.launches[number].kernel
        lines.append(f"inline auto ks_kernel_{number}() {{ return &({name}); }}")
    return [
        *lines,
        *(f"#undef {name}" for name in dict.fromkeys(macros)),
        f"}}  // namespace {variant_name(index)}",
        "",
    ]
