"""A compiler's output made fit for people, models and terminals, and what it says about the plan.

Covered: length, control characters (terminal escapes, bidirectional overrides), paths of this machine.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .compilation import BufferArgument, EntryPoint
from .printable import printable
from .unit import CONSTANTS_FILE, KERNEL_FILE, PLAN_FILE, restore_names

__all__ = ["Diagnosis", "clean_output", "diagnose", "undefined_sentence"]

LOG_LIMIT = 16_000
MESSAGE_LIMIT = 2_400
_ERRORS_SHOWN = 5
_NOTES_SHOWN = 2
# How far before `__global__` its declaration may begin.
_REACH = 300

_HEADLINE = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|warning|note): "
)
_TALLY = re.compile(r"\d+ (warnings?|errors?)( and \d+ errors?)? generated.*")
# Without a place: from the back end or the linker. That the front end failed is known by then.
_BARE_ERROR = re.compile(
    r"^(?:[\w.+-]+: |<unknown>:0:0: )?(?:fatal )?error: (?!clang frontend command failed)(?P<text>.*)$",
    re.MULTILINE,
)
_MISMATCH = re.compile(r"KS_PLAN (?P<what>count|argument) (?P<entry>\d+) (?P<rest>.*)$")
_UNDEFINED = re.compile(r"undefined (?:hidden |protected )?symbol: (?:[\w:]*::)?(?P<name>\w+)")
_SPELLED = re.compile(r"\[T = (?P<type>.*)\]$")
_LDS = re.compile(r"local memory \((?P<used>\d+)\) exceeds limit \((?P<limit>\d+)\)")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a build failed, as in `CompileFailure`; not `found` when the output names no cause."""

    stage: Literal["plan", "source", "limits"]
    message: str
    found: bool = True


def _message(text: str) -> str:
    kept = printable(text)
    return kept if len(kept) <= MESSAGE_LIMIT else kept[:MESSAGE_LIMIT].rstrip() + "\n[cut off]"


def clean_output(raw: bytes, hidden: Sequence[Path]) -> str:
    """The compiler's output as text, whole, with the folders `hidden` taken out of paths."""
    text = raw.decode(errors="replace")
    for folder in sorted({str(path) for path in hidden}, key=len, reverse=True):
        text = text.replace(folder + "/", "").replace(folder, ".")
    text = re.sub(rf"(^|[\s'\"])\./{re.escape(KERNEL_FILE)}\b", rf"\1{KERNEL_FILE}", text, flags=re.MULTILINE)
    return printable("\n".join(_without_our_lines(restore_names(text))))


def _without_our_lines(text: str) -> Iterator[str]:
    """`text` with only the headlines of what is said about the generated unit, which nobody has seen."""
    hidden, seen = False, set[str]()
    for line in text.splitlines():
        if line.startswith(f"In file included from {CONSTANTS_FILE}:"):
            continue
        headline = _HEADLINE.match(line)
        if headline and headline["kind"] != "note":
            hidden = headline["file"] == PLAN_FILE
            if hidden and line[headline.end() :] not in seen:
                seen.add(line[headline.end() :])
                yield _without_requirement(line)
        if not hidden:
            yield line


def _without_requirement(line: str) -> str:
    """A failed static_assert without its condition, which is the generated unit's own text."""
    condition, message = line.find(" due to requirement "), line.rfind(": KS_PLAN ")
    return line[:condition] + line[message:] if 0 <= condition < message else line


def diagnose(log: str, entries: Sequence[EntryPoint], source: str) -> Diagnosis:
    """What a failed compile was about, from its cleaned output."""
    if match := _LDS.search(log):
        return Diagnosis("limits", _lds_sentence(match))
    blocks = _blocks(log)
    errors = [block for block in blocks if "error" in block.kind]
    own = [block for block in errors if block.file != PLAN_FILE]
    if errors and not own:
        return Diagnosis("plan", _plan_message(errors, entries, source))
    if own:
        return Diagnosis("source", _source_message(own))
    if match := _UNDEFINED.search(log):
        return Diagnosis("source", undefined_sentence(match["name"], "function", source))
    bare = [match.group("text") for match in _BARE_ERROR.finditer(log)]
    message = "\n".join(bare) or log.strip() or "The compiler failed without a message."
    return Diagnosis("source", _message(message), found=bool(bare))


def undefined_sentence(name: str, kind: str, source: str) -> str:
    """What to say of a name that is used and defined nowhere, with the line that mentions it first."""
    mention = re.compile(rf"\b{re.escape(name)}\b")
    line = next((number for number, text in enumerate(source.splitlines(), 1) if mention.search(text)), 1)
    return f"{KERNEL_FILE}:{line}: error: {kind} '{name}' is declared but defined nowhere"


@dataclass(frozen=True, slots=True)
class _Block:
    """One diagnostic: its first line taken apart, and every line of it up to the next error or warning."""

    file: str
    kind: str
    text: str
    lines: tuple[str, ...]


def _blocks(log: str) -> list[_Block]:
    blocks: list[_Block] = []
    for line in log.splitlines():
        match = _HEADLINE.match(line)
        if match and match["kind"] != "note":
            blocks.append(_Block(match["file"], match["kind"], line[match.end() :], (line,)))
        elif blocks and not line.startswith("In file included from"):
            last = blocks[-1]
            blocks[-1] = _Block(last.file, last.kind, last.text, (*last.lines, line))
    return blocks


def _source_message(blocks: Sequence[_Block]) -> str:
    shown = ["\n".join(_shortened(block)) for block in blocks[:_ERRORS_SHOWN]]
    if len(blocks) > _ERRORS_SHOWN:
        shown.append(f"[{len(blocks) - _ERRORS_SHOWN} more errors]")
    return _message("\n".join(shown))


def _shortened(block: _Block) -> list[str]:
    """The lines of an error, led by the candidate's own line where the error stands in a header."""
    lines: list[str] = []
    notes = 0
    for line in block.lines:
        match = _HEADLINE.match(line)
        if match and match["kind"] == "note":
            notes += 1
        if notes > _NOTES_SHOWN or _TALLY.fullmatch(line):
            break
        lines.append(line)
    if block.file == KERNEL_FILE:
        return lines
    for line in block.lines:
        match = _HEADLINE.match(line)
        if match and match["file"] == KERNEL_FILE:
            return [f"{KERNEL_FILE}:{match['line']}:{match['column']}: error: {block.text}", *lines]
    return lines


def _plan_message(errors: Sequence[_Block], entries: Sequence[EntryPoint], source: str) -> str:
    # The first thing said of each kernel; what follows from it is of no use.
    unknown = {_entry_number(block): block for block in reversed(errors) if not _MISMATCH.search(block.text)}
    sentences = [_unknown(block, entries, source) for _, block in sorted(unknown.items())]
    for block in errors:
        match = _MISMATCH.search(block.text)
        # Where clang guessed another kernel for an unknown name, what it says of that one is of no use.
        if match and int(match["entry"]) not in unknown:
            sentences.append(_mismatch(match, entries))
    return _message("; ".join(list(dict.fromkeys(sentences))[:_ERRORS_SHOWN]))


def _entry_number(block: _Block) -> int:
    headline = _HEADLINE.match(block.lines[0])
    return int(headline["line"]) - 1 if headline else -1


def _mismatch(match: re.Match[str], entries: Sequence[EntryPoint]) -> str:
    entry = entries[int(match["entry"])]
    if match["what"] == "count":
        if match["rest"] == "?":
            return f"{entry.kernel} of the plan is not a function that returns void"
        plural = "" if len(entry.arguments) == 1 else "s"
        passed = f"{len(entry.arguments)} argument{plural}"
        return f"{entry.kernel}: the plan passes {passed} but the kernel takes {match['rest']}"
    number, _, spelled = match["rest"].partition(" ")
    argument = entry.arguments[int(number)]
    found = _SPELLED.search(spelled)
    taken = re.sub(r" ([*&]+)", r"\1", found["type"]) if found else "something else"
    what = f"a {argument.dtype} buffer" if isinstance(argument, BufferArgument) else _number(argument.dtype)
    return (
        f"argument {int(number) + 1} of {entry.kernel}, '{argument.name}': "
        f"the plan passes {what} but the kernel takes {taken}"
    )


def _number(dtype: str) -> str:
    return f"{'an' if dtype[0] in 'aeiou' else 'a'} {dtype} number"


def _unknown(block: _Block, entries: Sequence[EntryPoint], source: str) -> str:
    number = _entry_number(block)
    kernel = entries[number].kernel if 0 <= number < len(entries) else "?"
    known = _kernel_names(source)
    base = kernel.partition("<")[0].strip()
    if "undeclared identifier" in block.text and base not in known:
        near = difflib.get_close_matches(base, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"it defines {', '.join([*known][:8]) or 'no kernel'}"
        return f"kernel '{kernel}' of the plan is not defined in the source; {hint}"
    if base in known and known[base] != ("<" in kernel):
        if known[base]:
            return (
                f"kernel '{kernel}' of the plan: {base} is a template; write its arguments too, {base}<...>"
            )
        return f"kernel '{kernel}' of the plan: {base} is not a template; write {base}"
    return f"kernel '{kernel}' of the plan: {block.text}"


def _kernel_names(source: str) -> dict[str, bool]:
    """The functions that are marked `__global__`, found without understanding C++; is each a template?"""
    names: dict[str, bool] = {}
    pieces = source.split("__global__")[:100]
    for before, piece in itertools.pairwise(pieces):
        head = re.split(r"[;{]", piece[:1000])[0]
        opening = re.split(r"[;{}]", before[-_REACH:])[-1]
        for word in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", head):
            if word[1] not in ("__launch_bounds__", "__attribute__", "alignas", "aligned"):
                names.setdefault(word[1], re.search(r"\btemplate\b", opening) is not None)
                break
    return names


def _lds_sentence(match: re.Match[str]) -> str:
    return (
        f"The kernel uses {match['used']} bytes of static LDS but a block may use {match['limit']}; "
        "make its tiles smaller."
    )
