"""A kernel file: HIP device code that opens with its launch plan in a comment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import read_regular

from .errors import PlanError, nearest
from .plan import ConstantValue, Launch, Plan, Scratch, parse_plan, toml_literal
from .toml_text import replace_value

__all__ = ["Kernel", "Launch", "Plan", "Scratch"]

MAX_BYTES = 2**20

_BEFORE = re.compile(r"\ufeff?(?:\s+|//[^\n]*\n|/\*(?!\s*plan\b).*?\*/)*", re.DOTALL)
_OPENING = re.compile(r"/\*\s*plan\b[^\S\n]*\r?\n?")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The file's text and its parsed plan.

    `key` is the SHA-256 of the text with line ends made LF, so that it names the same kernel wherever
    it is stored. `path` is where it was read from, if it was.
    """

    source: str
    plan: Plan = field(compare=False)
    key: str
    path: Path | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str, *, path: Path | None = None) -> Kernel:
        """Parse a kernel file's text; PlanError with the line in that file."""
        try:
            _check_text(text)
            start, end, line = _plan_span(text)
            plan = parse_plan(text[start:end], line)
        except PlanError as error:
            raise PlanError(error.message, line=error.line, path=path) from None
        normal = text.removeprefix("\ufeff").replace("\r\n", "\n")
        return cls(text, plan, hashlib.sha256(normal.encode()).hexdigest(), path)

    @classmethod
    def load(cls, path: Path | str) -> Kernel:
        """Read a kernel file; UsageError when it cannot be read, PlanError when its plan is wrong."""
        file = Path(path)
        try:
            data = read_regular(file, MAX_BYTES)
        except FileNotFoundError:
            raise UsageError(f"{file}: there is no such kernel file; check the path") from None
        except OSError as error:
            raise UsageError(f"{file}: cannot be read ({error.strerror}); give a kernel file") from None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise UsageError(f"{file}, line {line}: is not UTF-8; save the file as UTF-8") from None
        return cls.parse(text, path=file)

    @property
    def code(self) -> str:
        """The text after the plan, with LF line ends; before a plan there are comments only."""
        text = self.source.replace("\r\n", "\n")
        return text[_plan_span(text)[1] + len("*/") :]

    def with_constants(self, constants: Mapping[str, ConstantValue]) -> Kernel:
        """A kernel whose plan has these constants changed, and the rest of its text untouched.

        PlanError when a constant is not in the plan, is not written as one ``NAME = value`` line, or
        when the new values break the plan's rules.
        """
        start, end, line = _plan_span(self.source)
        text = self.source[start:end]
        for name, value in constants.items():
            if name not in self.plan.constants:
                raise PlanError(
                    f"there is no constant '{name}'; {nearest(name, self.plan.constants)}", line=line
                )
            try:
                text = replace_value(text, ("constants", name), toml_literal(value))
            except KeyError:
                message = f"write constant '{name}' as a line 'NAME = value' under [constants]"
                raise PlanError(message, line=self.plan.constant_lines[name]) from None
        changed = Kernel.parse(self.source[:start] + text + self.source[end:])
        wanted = replace(self.plan, constants={**self.plan.constants, **constants})
        if changed.plan != wanted:
            raise PlanError(
                "the constants cannot be changed in place; write each on a line of its own", line=line
            )
        return changed


def _check_text(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise PlanError(f"the kernel has {len(text)} characters; it may have {MAX_BYTES}", line=1)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            raise PlanError("the text cannot be written as UTF-8", line=line) from None


def _plan_span(text: str) -> tuple[int, int, int]:
    """Where the plan's TOML starts and ends in `text`, and the line it starts on."""
    before = _BEFORE.match(text)
    opening = _OPENING.match(text, before.end() if before else 0)
    if opening is None:
        raise PlanError("the file must open with a launch plan, a comment '/* plan ... */'", line=1)
    start = opening.end()
    line = text.count("\n", 0, start) + 1
    end = text.find("*/", start)
    if end < 0:
        raise PlanError("the plan's comment is never closed; end it with '*/'", line=line)
    return start, end, line
