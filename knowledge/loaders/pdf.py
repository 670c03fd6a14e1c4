"""PDF through PDFium: sections along the outline, or along headings by their type where there is none.

Covered: papers in two columns, manuals with outline, tables and code, turned pages, words broken at line
ends. Not covered: scans, underscores that are drawn as lines, text at an angle beside upright text, formulas
beyond their characters, tables whose cells are only told apart by ruled lines.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .document import LoadedDocument, LoadError, Section
from .pdf_blocks import blocks, leading
from .pdf_headings import Heading, by_outline, by_type, outline_entries, title_of, with_names
from .pdf_layout import Line, reading_order, without_furniture
from .pdf_text import Page, read_page

__all__ = ["load"]

# PDFium may be used by one thread at a time only.
_PDFIUM = threading.Lock()
_END_MARK = b"%%EOF"
_END_SEARCHED = 4096
_MOST_UNKNOWN = 0.3


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a PDF; raises `LoadError` when it is encrypted, scanned, cut off or damaged."""
    if not raw.strip():
        raise LoadError("the file is empty")
    try:
        pdfium: Any = importlib.import_module("pypdfium2")
    except ImportError:
        raise LoadError("reading PDF needs pypdfium2: pip install 'kernel-scientist[pdf]'") from None
    if b"%PDF-" not in raw[:1024]:
        raise LoadError("not a readable PDF (it does not begin like one)")
    if _END_MARK not in raw[-_END_SEARCHED:]:
        raise LoadError("not a readable PDF (it is cut off: its end is missing); download it again")
    with _PDFIUM:
        try:
            document = pdfium.PdfDocument(raw)
        except pdfium.PdfiumError as error:
            raise _unreadable(error) from error
        try:
            return _read(document, name, pdfium.PdfiumError)
        finally:
            document.close()


def _unreadable(error: Exception) -> LoadError:
    if "password" in str(error).lower():
        return LoadError("it is encrypted; save a copy without the password")
    return LoadError(f"not a readable PDF ({str(error)[:120]})")


def _read(document: Any, name: str, failure: type[Exception]) -> LoadedDocument:
    pages, broken = _pages(document, failure)
    _check(pages, broken)
    blank = sum(not page.runs for page in pages)
    without_furniture(pages)
    lines: list[Line] = []
    for page in pages:
        lines += reading_order(page, lines[-1].region + 1 if lines else 0)
    entries = outline_entries(document)
    body = _body_size(lines)
    title, lines = title_of(document, lines, body, Path(name).stem)
    headings = with_names(by_outline(entries, lines), lines, body) if entries else by_type(lines, body)
    return LoadedDocument(
        title,
        tuple(_sections(lines, headings)),
        pages=len(pages) + len(broken),
        note="; ".join([*_cannot_be_read(broken), *_hold_no_text(blank, len(pages))]),
    )


def _pages(document: Any, failure: type[Exception]) -> tuple[list[Page], list[int]]:
    """The pages, and the numbers of those that cannot be read."""
    pages: list[Page] = []
    broken: list[int] = []
    for index in range(len(document)):
        try:
            page = document[index]
            try:
                pages.append(read_page(page, index + 1))
            finally:
                page.close()
        except failure:
            broken.append(index + 1)
    return pages, broken


def _check(pages: Sequence[Page], broken: Sequence[int]) -> None:
    if not pages:
        raise LoadError(
            f"not a readable PDF ({'none of its pages can be read' if broken else 'it has no pages'})"
        )
    if not any(page.runs for page in pages):
        raise LoadError("it has pages but no text, so it is probably a scan; run OCR on it first")
    characters = sum(len(run.text) for page in pages for run in page.runs)
    if sum(page.unknown for page in pages) > _MOST_UNKNOWN * characters:
        raise LoadError("its fonts do not say which letters they hold; run OCR on it first")


def _cannot_be_read(broken: Sequence[int]) -> list[str]:
    return [f"these pages cannot be read: {', '.join(map(str, broken))}"] if broken else []


def _hold_no_text(blank: int, pages: int) -> list[str]:
    return [f"{blank} of {pages} pages hold no text"] if blank else []


def _body_size(lines: Sequence[Line]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.size, 1)] += len(line.text)
    return sizes.most_common(1)[0][0]


def _sections(lines: list[Line], headings: list[Heading]) -> list[Section]:
    """The text between headings; `headings` name the lines before which they start, in order."""
    usual = leading(lines)
    compounds = frozenset(
        word.lower() for line in lines for word in re.findall(r"\b[A-Za-z]+-[A-Za-z]+\b(?!-$)", line.text)
    )
    cuts = [(0, 0, ()), *((heading.start, heading.end, heading.path) for heading in headings)]
    ends = [*(cut[0] for cut in cuts[1:]), len(lines)]
    sections: list[Section] = []
    for (_, first, path), end in zip(cuts, ends, strict=True):
        section = _section(path, lines[first:end], usual, compounds)
        if section is not None:
            sections.append(section)
    return sections


def _section(
    path: tuple[str, ...], lines: list[Line], usual: float, compounds: frozenset[str]
) -> Section | None:
    text = ""
    starts: list[tuple[int, int]] = []
    for block in blocks(lines, usual):
        if text:
            text += "\n\n"
        if not starts or starts[-1][1] != block.page:
            starts.append((len(text), block.page))
        text += block.text(compounds)
    return Section(path, text, starts[0][1], page_starts=tuple(starts)) if text.strip() else None
