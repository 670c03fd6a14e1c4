"""HTML through lxml: the page's own content without its navigation, as sections with code and tables whole.

Covered: pages made by documentation generators, papers, blogs; definitions of functions as sections of their
own. Not covered: text that scripts make in the browser.
"""

from __future__ import annotations

import codecs
import importlib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, final

from .document import LoadedDocument, LoadError, Section, decode, require_text

__all__ = ["load"]

# lxml brings no types of its own.
_Element: TypeAlias = Any

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w-]+)", re.IGNORECASE)
_DROPPED = frozenset(
    [
        "script",
        "style",
        "template",
        "noscript",
        "nav",
        "aside",
        "form",
        "button",
        "input",
        "select",
        "svg",
        "canvas",
        "iframe",
        "object",
        "head",
    ]
)
# Classes and roles of what surrounds a page's text, as documentation generators name it.
_AROUND = re.compile(
    r"\b(headerlink|sidebar|toctree-wrapper|breadcrumbs?|related|navbar|nav|menu|cookie\S*|linenos|skip-link|"
    r"toc|table-of-contents|prev-next\S*|copybtn|site-footer|site-header|pagination|share|comments)\b(?!-)"
)
_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary"})
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "cite",
        "code",
        "data",
        "dfn",
        "em",
        "font",
        "i",
        "img",
        "ins",
        "kbd",
        "label",
        "mark",
        "math",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
        "del",
        "mi",
        "mo",
        "mn",
        "mrow",
        "msup",
        "msub",
        "mfrac",
        "mtext",
    ]
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DEFINITION_LEVEL = 10
_LONGEST_HEADING = 160


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read an HTML page; raises `LoadError`."""
    try:
        html: Any = importlib.import_module("lxml.html")
    except ImportError:
        raise LoadError("reading HTML needs lxml: pip install 'kernel-scientist[html]'") from None
    text = _decoded(raw)
    # Without `huge_tree` what is nested deeper than 256 elements would be dropped in silence.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        page = html.document_fromstring(text.encode(errors="replace"), parser=parser)
    except Exception as error:  # lxml's own errors, and what it makes of nothing
        raise LoadError(f"not a readable HTML page ({str(error)[:120]})") from error
    walk = _Walk()
    walk.into(_content(page))
    sections = walk.sections()
    if not any(section.text.strip() for section in sections):
        walk = _Walk()
        walk.into(page)
        sections = walk.sections()
    title = _meta(page, "citation_title") or _only_top(sections) or _title(page) or Path(name).stem
    return LoadedDocument(
        title,
        tuple(Section(s.path[1:] if s.path[:1] == (title,) else s.path, s.text) for s in sections if s.text),
        authors=tuple(map(_person, _metas(page, "citation_author") or _metas(page, "author"))),
        year=_year(_meta(page, "citation_publication_date") or _meta(page, "citation_date")),
    )


def _decoded(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return decode(raw)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        declared = _META_CHARSET.search(raw[:4096])
        try:
            text = raw.decode(declared[1].decode() if declared else "cp1252")
        except (LookupError, UnicodeDecodeError):
            return decode(raw)
        require_text(text)
        return text
    return decode(raw)


def _content(page: _Element) -> _Element:
    """The element that holds the page's own text."""
    for path in ("//main", "//*[@role='main']", "//article"):
        found: Any = page.xpath(path)
        if len(found) == 1:
            return found[0]
    body: Any = page.find("body")
    return page if body is None else body


@final
class _Walk:
    """Gathers sections while going through a page."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._path: list[tuple[int, str]] = []
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._depth = 0
        self._item = False

    def sections(self) -> list[Section]:
        self._close()
        return self._sections

    def into(self, element: _Element) -> None:
        """Take in all that is inside `element`."""
        self._words.append(element.text or "")
        for child in element:
            if not _is_around(child):
                self._take(child)
            self._words.append(child.tail or "")

    def _take(self, element: _Element) -> None:
        tag = str(element.tag)
        if tag in _INLINE:
            self.into(element)
        elif tag == "br":
            self._words.append("\n")
        elif tag in _HEADINGS:
            self._heading(_HEADINGS[tag], _line(element))
        elif tag == "pre":
            self._flush()
            self._blocks.append(_fenced(_raw_text(element)))
        elif tag == "table" and not _is_layout(element):
            self._flush()
            self._blocks.append("\n".join(_table(element)))
        elif tag == "dl" and element.xpath("./dt[contains(@class, 'sig')]"):
            self._definitions(element)
        else:
            self._flush()
            if tag == "li":
                self._item = True
            self.into(element)
            self._flush()

    def _definitions(self, element: _Element) -> None:
        """A function or type that a documentation generator describes: its name is a heading."""
        self._depth += 1
        level = _DEFINITION_LEVEL + self._depth
        for child in element:
            if child.tag == "dt":
                named: Any = child.xpath(".//*[contains(@class, 'sig-name') or contains(@class, 'descname')]")
                signature = _line(child)
                self._heading(level, _line(named[-1]) if named else signature)
                self._blocks.append(signature)
            elif not _is_around(child):
                self.into(child)
                self._flush()
        self._close()
        self._path = [entry for entry in self._path if entry[0] < level]
        self._depth -= 1

    def _heading(self, level: int, text: str) -> None:
        self._close()
        text = text.strip("§ ")  # how some generators show a heading's own link
        if text:
            self._path = [entry for entry in self._path if entry[0] < level]
            self._path.append((level, text[:_LONGEST_HEADING]))

    def _flush(self) -> None:
        lines = (" ".join(line.split()) for line in "".join(self._words).split("\n\n"))
        text = "\n".join(line for line in lines if line)
        if text:
            self._blocks.append(f"- {text}" if self._item else text)
            self._item = False
        self._words = []

    def _close(self) -> None:
        self._flush()
        if self._blocks:
            self._sections.append(Section(tuple(name for _, name in self._path), _joined(self._blocks)))
        self._blocks = []


def _joined(blocks: list[str]) -> str:
    """Blocks with a blank line between them, but for neighbouring items of a list."""
    text = blocks[0]
    for before, block in itertools.pairwise(blocks):
        text += ("\n" if before.startswith("- ") and block.startswith("- ") else "\n\n") + block
    return text


def _is_around(element: _Element) -> bool:
    tag = element.tag
    if not isinstance(tag, str) or tag in _DROPPED:
        return True
    if element.get("role") in _ROLES or element.get("aria-hidden") == "true":
        return True
    if tag in ("footer", "header"):
        return not element.xpath(".//h1") and not element.xpath("ancestor::main | ancestor::article")
    return tag not in ("body", "main", "article") and bool(_AROUND.search(element.get("class") or ""))


def _line(element: _Element) -> str:
    """An element's text in one line, without what only surrounds it."""
    return " ".join(_raw_text(element).split())


def _raw_text(element: _Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if child.tag == "br":
            parts.append("\n")
        elif not _is_around(child):
            parts.append(_raw_text(child))
        parts.append(child.tail or "")
    return "".join(parts).replace("¶", "")


def _fenced(code: str) -> str:
    fence = "~~~~" if "```" in code else "```"
    return f"{fence}\n{code.strip(chr(10)).rstrip()}\n{fence}"


def _is_layout(table: _Element) -> bool:
    """Whether a table only places things on the page: headings, code or other tables are in it."""
    return (
        bool(table.xpath(".//table | .//h1 | .//h2 | .//h3 | .//pre")) or table.get("role") == "presentation"
    )


def _table(table: _Element) -> Iterable[str]:
    caption = table.find("caption")
    if caption is not None:
        yield _line(caption)
    for number, row in enumerate(table.iter("tr")):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        if not cells:
            continue
        texts = [_line(cell).replace("|", "\\|") for cell in cells]
        yield f"| {' | '.join(texts)} |"
        if number == 0:
            yield f"|{'---|' * len(cells)}"


def _metas(page: _Element, name: str) -> list[str]:
    found: Any = page.xpath("//meta[@name=$name]/@content", name=name)
    return [" ".join(str(value).split()) for value in found if str(value).strip()]


def _meta(page: _Element, name: str) -> str | None:
    return next(iter(_metas(page, name)), None)


def _title(page: _Element) -> str | None:
    found = page.find(".//title")
    return None if found is None else " ".join((found.text or "").split()) or None


def _only_top(sections: list[Section]) -> str | None:
    """The heading that all headed text is under."""
    tops = {section.path[0] for section in sections if section.path}
    return tops.pop() if len(tops) == 1 else None


def _person(name: str) -> str:
    """A name as it is said: citations have the family's first."""
    family, comma, given = name.partition(", ")
    return f"{given} {family}" if comma and "," not in given else name


def _year(date: str | None) -> int | None:
    found = re.match(r"(\d{4})\b", date or "")
    return int(found[1]) if found else None
