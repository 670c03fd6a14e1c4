"""Jupyter notebooks: Markdown cells give the headings, code cells and what they printed are below them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from . import markdown
from .document import LoadedDocument, LoadError, decode, is_list

__all__ = ["load"]

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_LONGEST_OUTPUT = 4000


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a notebook of format 3 or 4; raises `LoadError`."""
    try:
        book = json.loads(decode(raw))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"not a Jupyter notebook ({str(error)[:120]})") from None
    cells = _cells(book)
    metadata = _table(_table(book).get("metadata"))
    language = str(_table(metadata.get("kernelspec")).get("language", "python"))
    # The blank line keeps a cell's rule from passing for front matter.
    text = "\n" + "\n\n".join(block for cell in cells for block in _blocks(cell, language))
    return markdown.load(text.encode(errors="replace"), name)


def _cells(book: Any) -> list[dict[str, Any]]:
    table = _table(book)
    sheets = table.get("worksheets")
    cells = (
        [c for s in sheets for c in _list(_table(s).get("cells"))] if is_list(sheets) else table.get("cells")
    )
    if not is_list(cells):
        raise LoadError("not a Jupyter notebook (it has no cells)")
    return [_table(cell) for cell in cells]


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input"))).strip("\n")
    match cell.get("cell_type"):
        case "code":
            yield from _fenced(source, language)
            for output in _list(cell.get("outputs")):
                yield from _fenced(_printed(_table(output)), "output")
        case "heading":
            level = cell.get("level")
            yield f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 1)} {source}"
        case _:
            yield source + ("\n" + marks[-1] if len(marks := _FENCE.findall(source)) % 2 else "")


def _printed(output: dict[str, Any]) -> str:
    """What an output shows as text; pictures and pages are left out."""
    data = _table(output.get("data"))
    text = _text(output.get("text") or data.get("text/plain"))
    if len(text) > _LONGEST_OUTPUT:
        return f"{text[:_LONGEST_OUTPUT]}\n({len(text) - _LONGEST_OUTPUT} more characters)"
    return text


def _fenced(text: str, language: str) -> Iterator[str]:
    if text.strip():
        fence = "~~~~" if "```" in text else "```"
        yield f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _text(value: Any) -> str:
    """A text that may be given as a list of its lines."""
    return "".join(str(line) for line in value) if is_list(value) else str(value or "")


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if is_list(value) else []
