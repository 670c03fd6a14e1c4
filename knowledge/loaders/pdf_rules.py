"""Underscores that a typesetter draws as short lines, as TeX does outside its typewriter fonts.

Without them ``asn1_read_value`` would be three words. Not covered: one at the beginning or end of a line, and
on pages that are turned.
"""

from __future__ import annotations

import ctypes
import importlib
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, final

__all__ = ["Rules", "find_rules"]

# In sizes of the text beside it: how long and thick such a line is, and how far off the line of writing.
_LONGEST, _THICKEST = 0.8, 0.2
_LOWEST, _HIGHEST = -0.3, 0.1
_REACH = 0.25
_ABSOLUTE_LONGEST, _ABSOLUTE_THICKEST = 30.0, 4.0
# Drawings have more objects than this, which take long to look through.
_MOST_OBJECTS = 20_000


@dataclass(frozen=True, slots=True, order=True)
class _Rule:
    x0: float
    y0: float
    x1: float
    y1: float


@final
class Rules:
    """A page's short flat lines."""

    def __init__(self, rules: list[_Rule]) -> None:
        self._rules = sorted(rules)

    def between(self, x0: float, x1: float, base: float, size: float) -> tuple[float, float] | None:
        """Left and right end of a line that can be an underscore between two characters, if there is one.

        They end at `x0` and begin at `x1`, stand on `base`, and are of `size`.
        """
        for rule in self._rules[bisect_left(self._rules, _Rule(x0 - _REACH * size, 0, 0, 0)) :]:
            if rule.x0 > x1:
                return None
            if (
                rule.x1 <= x1 + _REACH * size
                and rule.x1 - rule.x0 <= _LONGEST * size
                and rule.y1 - rule.y0 <= _THICKEST * size
                and _LOWEST * size <= (rule.y0 + rule.y1) / 2 - base <= _HIGHEST * size
            ):
                return rule.x0, rule.x1
        return None


def find_rules(page: Any) -> Rules:
    """The short flat lines of a PDFium page; none of one that is a drawing."""
    raw: Any = importlib.import_module("pypdfium2.raw")
    count = raw.FPDFPage_CountObjects(page)
    found: list[_Rule] = []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(count if count <= _MOST_OBJECTS else 0):
        item = raw.FPDFPage_GetObject(page, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_PATH:
            continue
        if not raw.FPDFPageObj_GetBounds(item, left, bottom, right, top):
            continue
        rule = _Rule(left.value, bottom.value, right.value, top.value)
        if rule.x1 - rule.x0 <= _ABSOLUTE_LONGEST and rule.y1 - rule.y0 <= _ABSOLUTE_THICKEST:
            found.append(rule)
    return Rules(found)
