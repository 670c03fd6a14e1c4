"""The text of a PDF's pages as PDFium gives it: runs of characters with their place and font."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import math
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .pdf_rules import Rules, find_rules

__all__ = ["Page", "Run", "read_page"]

# The same letters, which some fonts draw as one.
_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
# PDFium's marks of a hyphen at the end of a line, and the soft hyphen.
_HYPHENS = (0x02, 0xFFFE, 0xAD)
# Letters of formulas, to be found as the letters they are.
_MATHEMATICAL = range(0x1D400, 0x1D800)
_UNKNOWN = (0, 0xFFFD)
_FIXED_PITCH = 1
_FIXED_NAMES = ("mono", "courier", "code", "typewriter", "consol", "menlo", "cmtt", "lmtt", "nimbusmonl")
_BOLD_NAMES = ("bold", "black", "heavy", "-medi", "cmbx", "semibold", "demi")
_BOLD_WEIGHT = 600
# A gap in a line that is wider than this, in font sizes, parts cells of a table or columns of a page.
_GAP = 1.0
_WORD_GAP = 0.15
_RAISED = 0.4
_DESCENT = 0.2
# Where the lowest line of a page that was turned back is put.
_MARGIN = 30.0


@dataclass(slots=True)
class Run:
    """Characters of one line with no wide gap; the origin is at the lower left, `y0` below `y1`."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    bold: bool = False
    fixed: bool = False

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


@dataclass(slots=True)
class Page:
    """A page's runs in the order they are stored; `unknown` of its characters no font names."""

    number: int
    width: float
    height: float
    runs: list[Run]
    unknown: int = 0


def read_page(page: Any, number: int) -> Page:
    """The runs of a PDFium page as they read when it is turned upright; `number` counts from 1."""
    text = page.get_textpage()
    try:
        found = list(_characters(text))
        turns = Counter(entry[0] for entry in found if entry[0] is not None)
        quarter = turns.most_common(1)[0][0] if turns else 0
        # What stands at another angle is a stamp in the margin or the label of an axis.
        upright = [_turned(entry[1], quarter) for entry in found if entry[0] in (quarter, None)]
        if not quarter:
            upright = _with_underscores(text, upright, find_rules(page))
        runs = [run for run in _runs(text, upright, quarter) if run.text.strip()]
    finally:
        text.close()
    width, height = page.get_size()
    if quarter % 2 != (page.get_rotation() // 90) % 2:
        width, height = height, width
    low = min((run.y0 for run in runs), default=0.0)
    if quarter:
        for run in runs:
            run.y0, run.y1 = run.y0 - low + _MARGIN, run.y1 - low + _MARGIN
    return Page(number, width, height, runs, sum(entry[1][1] in _UNKNOWN for entry in found))


_Character = tuple[int, int, float, float, float, float]


def _characters(text: Any) -> Iterator[tuple[int | None, _Character]]:
    """Quarters of a turn, and index, code and box (left, bottom, right, top) of each character.

    Line ends have neither angle nor box.
    """
    raw = _pdfium()
    box = raw.FS_RECTF()
    high = 0
    for index in range(text.count_chars()):
        code = raw.FPDFText_GetUnicode(text, index)
        if 0xD800 <= code < 0xDC00:
            high = code  # the first half of a character of UTF-16
            continue
        if 0xDC00 <= code < 0xE000 and high:
            code = 0x10000 + ((high - 0xD800) << 10) + code - 0xDC00
        if code in (10, 13):
            yield None, (index, 10, 0, 0, 0, 0)
        elif raw.FPDFText_GetLooseCharBox(text, index, box):
            quarter = round(raw.FPDFText_GetCharAngle(text, index) / (math.pi / 2)) % 4
            yield quarter, (index, code, box.left, box.bottom, box.right, box.top)


def _turned(character: _Character, quarter: int) -> _Character:
    """A character whose box is turned back by quarters of a turn."""
    index, code, *corners = character
    x0, y0, x1, y1 = corners
    for _ in range(quarter):
        x0, y0, x1, y1 = -y1, x0, -y0, x1
    return index, code, x0, y0, x1, y1


def _with_underscores(text: Any, characters: list[_Character], rules: Rules) -> list[_Character]:
    """The characters, with an underscore where a line is drawn as one between two of them."""
    found: list[_Character] = []
    before: _Character | None = None
    for character in characters:
        if _shown(character[1]).isspace() and character[1] != 10:
            continue  # the gap says as much
        if before is not None and 10 not in (before[1], character[1]):
            height = max(1.0, before[5] - before[3])
            if character[2] - before[4] > _WORD_GAP * height:
                size, base = _size_and_base(text, before, 0)
                drawn = rules.between(before[4], character[2], base, size)
                if drawn is not None:
                    found.append((before[0], 0x5F, drawn[0], before[3], drawn[1], before[5]))
        found.append(character)
        before = character
    return found


def _pdfium() -> Any:
    """PDFium's own functions, which have no types that checkers could read."""
    return importlib.import_module("pypdfium2.raw")


def _runs(text: Any, characters: list[_Character], quarter: int) -> Iterator[Run]:
    held: list[_Character] = []
    for character in characters:
        if character[1] == 10:
            if held:
                yield _run(text, held, quarter)
            held = []
        elif not _shown(character[1]).isspace():
            if held and not _continues(held, character):
                yield _run(text, held, quarter)
                held = []
            held.append(character)
    if held:
        yield _run(text, held, quarter)


def _continues(held: list[_Character], character: _Character) -> bool:
    before = held[-1]
    if before[2:] == character[2:]:
        return True  # letters of one ligature share its box
    size = max(1.0, before[5] - before[3])
    return (
        -0.5 * size < character[2] - before[4] < _GAP * size
        and abs(character[3] - before[3]) < _RAISED * size
    )


def _run(text: Any, held: list[_Character], quarter: int) -> Run:
    # A line of prose may begin or end with a word set as code.
    fonts = [_font(text, held[at][0]) for at in {0, len(held) // 2, len(held) - 1}]
    size, base = _size_and_base(text, held[0], quarter)
    fixed = all(font[1] for font in fonts)
    pitch = min((c[4] - c[2] for c in held if c[4] > c[2]), default=0.0)
    shown = _shown(held[0][1])
    for before, character in itertools.pairwise(held):
        gap = 0.0 if before[2:] == character[2:] else character[2] - before[4]
        blanks = 1 if gap > _WORD_GAP * size else 0
        if fixed and pitch:
            blanks = max(blanks, round(gap / pitch))
        shown += " " * blanks + _shown(character[1])
    return Run(
        shown,
        x0=held[0][2],
        y0=base - _DESCENT * size,
        x1=max(character[4] for character in held),
        y1=base + (1 - _DESCENT) * size,
        size=size,
        bold=all(font[0] for font in fonts),
        fixed=fixed,
    )


def _size_and_base(text: Any, character: _Character, quarter: int) -> tuple[float, float]:
    """The size of a character as it is shown, and the height it stands on: boxes differ from font to font."""
    raw = _pdfium()
    index, _, _, y0, _, y1 = character
    matrix = raw.FS_MATRIX()
    x, y = ctypes.c_double(), ctypes.c_double()
    known = raw.FPDFText_GetMatrix(text, index, matrix) and raw.FPDFText_GetCharOrigin(text, index, x, y)
    if quarter or not known:
        return max(1.0, y1 - y0), y0 + _DESCENT * (y1 - y0)
    size = raw.FPDFText_GetFontSize(text, index) * math.hypot(matrix.c, matrix.d)
    return size or max(1.0, y1 - y0), y.value


def _font(text: Any, index: int) -> tuple[bool, bool]:
    """Whether a character's font is bold, and whether it is of a fixed pitch."""
    raw = _pdfium()
    name = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(text, index, name, len(name), flags)
    font = name.value.decode("latin-1").lower()
    weight = raw.FPDFText_GetFontWeight(text, index)
    bold = weight >= _BOLD_WEIGHT or any(part in font for part in _BOLD_NAMES)
    fixed = bool(flags.value & _FIXED_PITCH) or any(part in font for part in _FIXED_NAMES)
    return bold, fixed


def _shown(code: int) -> str:
    if code in _HYPHENS:
        return "-"
    if code in _UNKNOWN:
        return "\N{REPLACEMENT CHARACTER}"
    character = _LIGATURES.get(code) or chr(code)
    if code in _MATHEMATICAL:
        character = unicodedata.normalize("NFKC", character)
    return character if character.isprintable() else " "
