"""A list of what to add with what is known of it: TOML, JSON or CSV.

TOML: one ``[[document]]`` table each. JSON: a list of objects, or ``{"document": [...]}``. CSV: a header
line; authors and tags are separated by semicolons. Keys: `path` or `url` (or an arXiv identifier there),
`title`, `authors`, `year`, `source` (where it was published), `tags`. Paths are relative to the manifest.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from pathlib import Path
from typing import Any, cast

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained, read_regular

from .loaders import LoadError
from .loaders.document import decode, is_list
from .sources import About, Wanted

__all__ = ["read_manifest"]

_LARGEST = 16 << 20
_KEYS = ("path", "url", "title", "authors", "year", "source", "tags")


def read_manifest(path: Path) -> list[Wanted]:
    """What the manifest names, in its order. Raises `UsageError` that says which entry is wrong and how."""
    with explained("read the manifest", path):
        raw = read_regular(path, _LARGEST)
    try:
        entries = _entries(decode(raw), path)
    except LoadError as error:
        raise UsageError(f"The manifest {path} cannot be read: {error}.") from None
    except (ValueError, csv.Error, RecursionError) as error:
        kind = path.suffix.lstrip(".").upper()
        raise UsageError(f"The manifest {path} is not {kind}: {str(error)[:200]}.") from None
    if not entries:
        raise UsageError(f"The manifest {path} names no documents; give each a table [[document]].")
    return [
        _wanted(entry, f"entry {number} of {path}", path.parent) for number, entry in enumerate(entries, 1)
    ]


def _entries(text: str, path: Path) -> list[Any]:
    match path.suffix.lower():
        case ".toml":
            value: Any = tomllib.loads(text)
        case ".json":
            value = json.loads(text)
        case ".csv":
            reader = csv.DictReader(io.StringIO(text), strict=True, restkey="")
            value = [{key: cell for key, cell in row.items() if cell} for row in reader]
        case other:
            raise UsageError(f"The manifest {path} ends in '{other}'; write it as .toml, .json or .csv.")
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if set(table) - {"document"}:
            extra = sorted(set(table) - {"document"})[0]
            raise UsageError(
                f"The manifest {path} has the unknown key '{extra}'; it holds [[document]] tables."
            )
        value = table.get("document", [])
    if not is_list(value):
        raise UsageError(f"The manifest {path} holds no list of documents.")
    return value


def _wanted(entry: Any, where: str, folder: Path) -> Wanted:
    if not isinstance(entry, dict):
        raise UsageError(f"The {where} is not a table of {', '.join(_KEYS)}.")
    table = cast("dict[str, Any]", entry)
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"The {where} has the unknown key '{key}'; known are {', '.join(_KEYS)}.")
    if ("path" in table) == ("url" in table):
        raise UsageError(f"The {where} needs either a path or a url.")
    about = About(
        title=_text(table, "title", where),
        authors=_list(table, "authors", where),
        year=_year(table.get("year"), where),
        origin=_text(table, "source", where),
    )
    path, url = _text(table, "path", where), _text(table, "url", where)
    source = str(folder / Path(path).expanduser()) if path is not None else str(url)
    return Wanted(source, _list(table, "tags", where), about)


def _text(table: dict[str, Any], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"The {key} of {where} is not a text.")
    return " ".join(value.split())


def _list(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, str):
        value = [part for part in value.split(";") if part.strip()]
    if not is_list(value) or not all(isinstance(item, str) and item.strip() for item in value):
        raise UsageError(f"The {key} of {where} is not a list of texts.")
    return tuple(" ".join(item.split()) for item in value)


def _year(value: Any, where: str) -> int | None:
    if value is None:
        return None
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and 1000 <= int(text) <= 9999):
        raise UsageError(f"The year of {where} is not a number such as 2025.")
    return int(text)
