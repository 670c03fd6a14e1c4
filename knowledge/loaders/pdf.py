"""PDF through pypdf: a section for each page, under the outline's headings.

Covered: text PDFs, with their outline. Not covered: scans, and columns that a file stores interleaved.
"""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .document import LoadedDocument, LoadError, Section, is_list

if TYPE_CHECKING:
    from pypdf import PdfReader

__all__ = ["load"]


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a PDF; raises `LoadError` when it is encrypted, scanned or damaged."""
    if not raw.strip():
        raise LoadError("the file is empty")
    try:
        from pypdf import PdfReader
    except ImportError:
        raise LoadError("reading PDF needs pypdf: pip install 'kernel-scientist[pdf]'") from None
    # pypdf reports each oddity of a file there; what matters is whether text comes out.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise LoadError("it is encrypted; save a copy without the password")
        pages = [page.extract_text() for page in reader.pages]
        headings = _headings(reader)
        title = ((reader.metadata.title if reader.metadata else None) or "").strip()
    except LoadError:
        raise
    except Exception as error:  # a damaged file makes pypdf raise nearly anything
        raise LoadError(f"not a readable PDF ({type(error).__name__}: {str(error)[:120]})") from error
    if not any(page.strip() for page in pages):
        raise LoadError("it has pages but no text, so it is probably a scan; run OCR on it first")
    sections: list[Section] = []
    path: tuple[str, ...] = ()
    for index, text in enumerate(pages):
        path = headings.get(index, path)
        sections.append(Section(path, text, index + 1))
    return LoadedDocument(title or Path(name).stem, tuple(sections))


def _headings(reader: PdfReader) -> dict[int, tuple[str, ...]]:
    """The heading path of the outline for each page on which headings start: the first of them."""
    paths: dict[int, tuple[str, ...]] = {}

    def walk(entries: list[Any], above: tuple[str, ...]) -> None:
        path = above
        for entry in entries:
            if is_list(entry):
                walk(entry, path)
                continue
            path = (*above, str(entry.title or "").strip())
            page = reader.get_destination_page_number(entry)
            if page is not None:
                paths.setdefault(page, path)

    walk(reader.outline, ())
    return paths
