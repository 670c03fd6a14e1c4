"""The translation unit round a candidate: its constants, its text, what its plan expects, what to export.

The candidate is included, not pasted: its lines keep their numbers, and an open comment or ``#if`` in it is
an error of its own instead of hiding what follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .compilation import BufferArgument, CompileRequest, EntryPoint, ScalarArgument
from .representations import KNOWN_TYPES, accepted_types, element_bytes, is_integer

__all__ = [
    "CONSTANTS_FILE",
    "KERNEL_FILE",
    "PLAN_FILE",
    "PlanMismatchError",
    "Unit",
    "constant_lines",
    "generate_unit",
    "restore_names",
]

# Names of the parts in the compiler's messages.
KERNEL_FILE = "kernel.hip"
PLAN_FILE = "plan"
CONSTANTS_FILE = "constants"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_KERNEL = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?P<arguments><[\w\s,:<>()+\-*/%&|^!=.'?]*>)?")
_CONSTANT = re.compile(r"[ -~]{1,400}")

# Dynamic LDS is declared `extern __shared__`, with attributes or a type in between. On the CPU `__shared__`
# means `static`, so this one use gets another name; it has as many letters, and columns stay true.
_SHARED = "__shared__"
_RENAMED = "__ks_lds__"
_EXTERN = re.compile(r"\bextern\b")
_HEADER = re.compile(
    r"^[ \t]{0,40}#[ \t]{0,40}include[ \t]{0,40}<(hip(?:cub)?/[\w/]{1,80}\.h(?:pp)?)>", re.MULTILINE
)
# How far back from `__shared__` its declaration may begin; a bound keeps hostile text cheap to read.
_REACH = 300
_TEMPLATE = re.compile(rf"\btemplate\s{{0,9}}<([^{{}};]{{0,{_REACH}}})")


class PlanMismatchError(Exception):
    """The launch plan cannot be what the source means; the text is the sentence for its author."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What the compiler reads: `text` includes `kernel` under the name `KERNEL_FILE`."""

    text: str
    kernel: str
    dynamic_lds: bool


def generate_unit(request: CompileRequest, *, cpu: bool) -> Unit:
    """The unit for the CPU or a GPU. Raises `PlanMismatchError` for names that cannot be C++."""
    kernel, dynamic = _rename_dynamic_lds(request.source) if cpu else (request.source, False)
    dynamic = dynamic or "HIP_DYNAMIC_SHARED" in request.source
    constants = constant_lines(request.constants, request.source)
    # Headers come before the constants: one called N or T must not change what they say.
    headers = [*_headers(request.source), "ks/signature.h", *(["ks/export.h"] if cpu else [])]
    lines = [f"#if __has_include(<{header}>)\n#include <{header}>\n#endif" for header in headers]
    lines += [f'#line 1 "{CONSTANTS_FILE}"', *constants]
    if cpu:
        lines.append(f"#define {_RENAMED} KS_DYNAMIC_LDS")
    lines.append(f'#include "{KERNEL_FILE}"')
    # Macros come after the candidate's text, which could have its own of these names.
    macros = ("ks/signature_macros.h", "ks/export_macros.h" if cpu else "ks/device_export.h")
    lines += [f"#include <{header}>" for header in macros]
    lines.append(f"#define KS_KNOWN_TYPES {_quoted(KNOWN_TYPES)}")
    for number, entry in enumerate(request.entries):
        _check_name(entry)
        lines += [f'#line {number + 1} "{PLAN_FILE}"', *_checks(number, entry)]
    for number, entry in enumerate(request.entries):
        lines += [f'#line {number + 1} "{PLAN_FILE}"', f"KS_EXPORT({number}, ({entry.kernel}))"]
    return Unit("\n".join(lines) + "\n", kernel, dynamic)


def _headers(source: str) -> list[str]:
    """The HIP headers that the candidate includes anywhere, in its order, each once."""
    return list(dict.fromkeys(_HEADER.findall(source)))


def restore_names(text: str) -> str:
    """Undo in a compiler's message what `generate_unit` renamed in the candidate."""
    return text.replace(_RENAMED, _SHARED)


def _rename_dynamic_lds(source: str) -> tuple[str, bool]:
    pieces: list[str] = []
    done = 0
    for match in re.finditer(rf"\b{_SHARED}\b", source):
        start = match.start()
        declaration = re.split(r"[;{}]", source[max(done, start - _REACH) : start])[-1]
        if _EXTERN.search(declaration):
            pieces += [source[done:start], _RENAMED]
            done = match.end()
    return "".join([*pieces, source[done:]]), bool(pieces)


def constant_lines(constants: Sequence[tuple[str, str]], source: str) -> list[str]:
    """The constants as lines that stand before `source`; `PlanMismatchError` for what cannot be one."""
    # Looked for once: a long source full of templates must not cost as much again for every constant.
    parameters = "\n".join(_TEMPLATE.findall(source)) if constants else ""
    return [_constant(name, value, parameters) for name, value in constants]


def _constant(name: str, value: str, parameters: str) -> str:
    """A macro; or a constexpr variable, where one of the source's template `parameters` hides the name."""
    if not _IDENTIFIER.fullmatch(name) or name.startswith(("__", "KS_", "ks_")):
        raise PlanMismatchError(
            f"constant '{name}' of the plan: this name cannot be a macro; choose another."
        )
    if not _CONSTANT.fullmatch(value) or value.endswith("\\"):
        raise PlanMismatchError(
            f"constant '{name}' of the plan: its value must be one short line of plain ASCII."
        )
    if re.search(rf"\b{name}\s{{0,9}}[,>=]", parameters):
        return f"static constexpr auto {name} = ({value});"
    return f"#define {name} {value}"


def _check_name(entry: EntryPoint) -> None:
    match = _KERNEL.fullmatch(entry.kernel)
    if match is None or len(entry.kernel) > 400:
        raise PlanMismatchError(
            f"kernel '{entry.kernel[:80]}' of the plan: expected a name such as matmul or matmul<TILE, 4>."
        )


def _checks(number: int, entry: EntryPoint) -> list[str]:
    """One static_assert a line, all on the same reported line: the kernel's number plus one.

    The kernel's name stands in parentheses, for its commas and for `&ns::f` alike.
    """
    name = f"({entry.kernel})"
    checks = [f"KS_CHECK_COUNT({number}, {len(entry.arguments)}, {name})"]
    for position, argument in enumerate(entry.arguments):
        checks.append(_check(number, position, argument, name))
    return [" ".join(checks)]


def _check(number: int, position: int, argument: BufferArgument | ScalarArgument, name: str) -> str:
    if isinstance(argument, ScalarArgument):
        kind = "INTEGER" if is_integer(argument.dtype) else "REAL"
        return f"KS_CHECK_{kind}({number}, {position}, {name})"
    accepted, size = _quoted(accepted_types(argument.dtype)), element_bytes(argument.dtype)
    return f"KS_CHECK_BUFFER({number}, {position}, {accepted}, KS_KNOWN_TYPES, {size}, {name})"


def _quoted(types: tuple[str, ...]) -> str:
    return '"|' + "|".join(types) + '|"'
