"""Markdown, with the front matter of the bundled notes: TOML between lines of ``+++``.

    +++
    title = "Banks of the local data share"
    tags = ["lds"]
    architectures = ["gfx942"]
    kind = "literature"
    sources = [{id = "s1", title = "...", url = "https://...", looked_up = "2026-12-01"}]
    +++

All keys are optional. YAML front matter (``---``) is skipped but for its title.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ..records import Source
from .document import LoadedDocument, LoadError, Section, decode, is_list

__all__ = ["load"]

_TOML_FENCE, _YAML_FENCE = "+++", "---"
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_KEYS = frozenset({"title", "tags", "architectures", "kind", "sources"})


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a Markdown file; raises `LoadError` for bad front matter."""
    lines = decode(raw).split("\n")
    settings, body = _front_matter(lines)
    sections = list(_sections(body))
    title = settings.get("title") or _title_of(sections) or Path(name).stem
    # The title is part of every citation; as a section of its own it would only be repeated there.
    sections = [Section(s.path[1:] if s.path[:1] == (title,) else s.path, s.text) for s in sections]
    return LoadedDocument(
        title=title,
        sections=tuple(section for section in sections if section.text.strip()),
        kind=settings.get("kind", "literature"),
        tags=settings.get("tags", ()),
        architectures=settings.get("architectures", ()),
        sources=settings.get("sources", ()),
    )


def _front_matter(lines: list[str]) -> tuple[dict[str, Any], list[str]]:
    fence = lines[0].strip()
    if fence not in (_TOML_FENCE, _YAML_FENCE):
        return {}, lines
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == fence), None)
    if fence == _YAML_FENCE:
        # A rule on the first line looks the same; front matter has "key: value" below it.
        if end is None or not re.match(r"[\w-]+\s*:", lines[1]):
            return {}, lines
        found = re.search(r"^title:\s*[\"']?(.+?)[\"']?\s*$", "\n".join(lines[1:end]), re.MULTILINE)
        return ({"title": found[1]} if found else {}), lines[end + 1 :]
    if end is None:
        raise LoadError(f"the front matter is not closed; end it with a line of {_TOML_FENCE}")
    try:
        table = tomllib.loads("\n".join(lines[1:end]))
    except tomllib.TOMLDecodeError as error:
        raise LoadError(f"the front matter is not TOML: {error} (counting from the line after +++)") from None
    return _checked(table), lines[end + 1 :]


def _checked(table: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(table.keys() - _KEYS)
    if unknown:
        raise LoadError(
            f"the front matter has the unknown key '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}"
        )
    settings: dict[str, Any] = {}
    if "title" in table:
        settings["title"] = _text(table["title"], "title")
    for key in ("tags", "architectures"):
        if key in table:
            settings[key] = tuple(_text(item, key) for item in _list(table[key], key))
    if "kind" in table:
        if table["kind"] not in ("literature", "experience"):
            raise LoadError("the front matter's kind is neither 'literature' nor 'experience'")
        settings["kind"] = table["kind"]
    if "sources" in table:
        settings["sources"] = tuple(_source(item) for item in _list(table["sources"], "sources"))
    return settings


def _source(item: Any) -> Source:
    if not isinstance(item, dict):
        raise LoadError("a source in the front matter is not a table such as {id, title, url, looked_up}")
    entry = cast(dict[str, Any], item)
    looked_up = entry.get("looked_up")
    return Source(
        id=_text(entry.get("id"), "sources.id"),
        title=_text(entry.get("title"), "sources.title"),
        url=_text(entry.get("url"), "sources.url"),
        looked_up=None if looked_up is None else str(looked_up),
    )


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise LoadError(f"the front matter's {key} is not a text")
    return value.strip()


def _list(value: Any, key: str) -> list[Any]:
    if not is_list(value):
        raise LoadError(f"the front matter's {key} is not a list")
    return value


def _title_of(sections: list[Section]) -> str | None:
    """The only first-level heading, if all the text after the first lines is under it."""
    tops = {section.path[0] for section in sections if section.path}
    return tops.pop() if len(tops) == 1 else None


def _sections(lines: list[str]) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    text: list[str] = []
    fence: str | None = None
    for line in lines:
        opened = _CODE_FENCE.match(line)
        if fence is not None:
            if opened and opened[1].startswith(fence) and line.strip() == opened[1]:
                fence = None
            text.append(line)
            continue
        if opened:
            fence = opened[1]
        heading = None if opened else _heading(line, text)
        if heading is None:
            text.append(line)
            continue
        yield Section(tuple(name for _, name in path), "\n".join(text).strip("\n"))
        text = []
        path = [entry for entry in path if entry[0] < heading[0]] + [heading]
    yield Section(tuple(name for _, name in path), "\n".join(text).strip("\n"))


def _heading(line: str, text: list[str]) -> tuple[int, str] | None:
    """The level and text of a heading that ends with `line`; takes an underlined one out of `text`."""
    marked = _HEADING.match(line)
    if marked:
        return len(marked[1]), (marked[2] or "").strip()
    underlined = _UNDERLINE.match(line)
    # A heading of one line only: below a paragraph, a table row or a list item the line is something else.
    if (
        underlined
        and text
        and re.match(r" {0,3}[^\s|>*+-]", text[-1])
        and (len(text) == 1 or not text[-2].strip())
    ):
        return (1 if underlined[1][0] == "=" else 2), text.pop().strip()
    return None
