"""reStructuredText as documentation generators read it: sections, code, tables and plain inline text.

Read line by line and not by docutils, which drops the content of every directive and role that it does not
know, and those of Sphinx are most of them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from .document import LoadedDocument, Section, decode

__all__ = ["load"]

_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>!$%&(),/;?@\[\\\]{|}])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"^(\s*)\.\. ([\w:+.-]+)::(?:\s+(.*))?$")
_TARGET = re.compile(r"^\s*\.\. (?:_[^:]+:|__ )")
_COMMENT = re.compile(r"^\s*\.\.(?:\s|$)(?!\[)")
_OPTION = re.compile(r"^\s*:[\w-]+:(?:\s|$)")
_CODE = frozenset(
    {"code", "code-block", "sourcecode", "literalinclude", "parsed-literal", "prompt", "highlight"}
)
# Of these only the page's layout would be left.
_UNREAD = frozenset({"toctree", "image", "meta", "include", "contents", "raw", "highlight", "literalinclude"})
_ROLE = re.compile(r":[\w:+.-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`")
_BARE_ROLE = re.compile(r":[\w:+.-]+:`<?([^`>]+)>?`")
_LINK = re.compile(r"`([^`<]+?)\s*<([^`>]+)>`__?")
_LITERAL = re.compile(r"``(.+?)``")
_ESCAPE = re.compile(r"\\([_*`|\\])")


def load(raw: bytes, name: str) -> LoadedDocument:
    """Read a reStructuredText file; raises `LoadError`."""
    sections = list(_sections(decode(raw).expandtabs(8).split("\n")))
    tops = {section.path[0] for section in sections if section.path}
    title = tops.pop() if len(tops) == 1 else Path(name).stem
    return LoadedDocument(
        title,
        tuple(
            Section(section.path[1:] if section.path[:1] == (title,) else section.path, section.text)
            for section in sections
            if section.text.strip()
        ),
    )


def _sections(lines: list[str]) -> Iterator[Section]:
    path: list[str] = []
    styles: list[tuple[str, bool]] = []
    body: list[str] = []
    index = 0
    while index < len(lines):
        heading = _heading(lines, index)
        if heading is None:
            body.append(lines[index])
            index += 1
            continue
        text, style, index = heading
        yield Section(tuple(path), _plain(body))
        body = []
        if style not in styles:
            styles.append(style)
        path = [*path[: styles.index(style)], _inline(text)]
    yield Section(tuple(path), _plain(body))


def _heading(lines: list[str], index: int) -> tuple[str, tuple[str, bool], int] | None:
    """The text and style of the heading that starts at a line, and where it ends."""
    line = lines[index].rstrip()
    following = [entry.rstrip() for entry in lines[index + 1 : index + 3]]
    if index and lines[index - 1].strip():
        return None
    over = _ADORNMENT.fullmatch(line)
    if over and len(following) == 2 and following[0].strip() and following[1] == line:
        return following[0].strip(), (line[0], True), index + 3
    if not line or line[0].isspace() or over or not following:
        return None
    under = _ADORNMENT.fullmatch(following[0])
    # Docutils lets a line be a little short too, with a warning; a shorter one is a rule or a table.
    if under and len(following[0]) >= len(line) - 1:
        return line, (following[0][0], False), index + 2
    return None


def _plain(lines: list[str]) -> str:
    """The body of a section: directives opened up, code fenced, inline marks taken away."""
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        directive = _DIRECTIVE.match(line)
        if directive:
            content, index = _indented(lines, index + 1, len(directive[1]))
            out.extend(_opened(directive[2], directive[3] or "", content))
        elif _TARGET.match(line):
            index += 1
        elif _COMMENT.match(line):
            _, index = _indented(lines, index + 1, len(line) - len(line.lstrip()))
        elif line.rstrip().endswith("::"):
            out.append(_inline(line.rstrip()[:-1]) if line.strip() != "::" else "")
            content, index = _indented(lines, index + 1, len(line) - len(line.lstrip()))
            out.extend(_fenced(content))
        else:
            out.append(_inline(line))
            index += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def _indented(lines: list[str], index: int, indent: int) -> tuple[list[str], int]:
    """The lines from `index` on that are indented more than `indent`, and where they end."""
    start = index
    while index < len(lines) and (
        not lines[index].strip() or len(lines[index]) - len(lines[index].lstrip()) > indent
    ):
        index += 1
    return textwrap.dedent("\n".join(lines[start:index])).strip("\n").split("\n"), index


def _opened(name: str, argument: str, content: list[str]) -> list[str]:
    options = 0
    while options < len(content) and _OPTION.match(content[options]):
        options += 1
    captions = [line.split(":", 2)[2].strip() for line in content[:options] if ":caption:" in line]
    body = content[options:]
    if name in _UNREAD:
        return []
    if name in _CODE:
        return ["", *captions, *_fenced(body)]
    if name == "list-table":
        return ["", _inline(argument), *_rows(body), ""]
    label = f"{name.rpartition(':')[2].capitalize()}: " if not argument and name in _ADMONITIONS else ""
    text = _plain(body)
    return [
        "",
        *([f"{label}{_inline(argument)}".rstrip()] if argument or label else []),
        *text.split("\n"),
        "",
    ]


_ADMONITIONS = frozenset({"note", "warning", "tip", "important", "caution", "hint", "attention", "danger"})


def _rows(lines: list[str]) -> Iterator[str]:
    """The rows of a list-table, whose cells are items of lists in a list."""
    rows: list[list[str]] = []
    for line in lines:
        opened = re.match(r"\s*(\* )?- ?(.*)", line)
        if opened and (opened[1] or not rows):
            rows.append([opened[2]])
        elif opened:
            rows[-1].append(opened[2])
        elif line.strip() and rows:
            rows[-1][-1] = f"{rows[-1][-1]} {line.strip()}".strip()
    for number, row in enumerate(rows):
        yield f"| {' | '.join(_inline(cell).strip() for cell in row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def _fenced(lines: list[str]) -> list[str]:
    code = "\n".join(lines).strip("\n")
    fence = "~~~~" if "```" in code else "```"
    return ["", fence, *code.split("\n"), fence, ""] if code.strip() else []


def _inline(text: str) -> str:
    text = _LITERAL.sub(r"`\1`", _LINK.sub(r"\1 (\2)", _BARE_ROLE.sub(_role, text)))
    return _ESCAPE.sub(r"\1", text)


def _role(found: re.Match[str]) -> str:
    titled = _ROLE.fullmatch(found[0])
    # A role's first character may say how much of the name is shown.
    return ((titled[1].strip() if titled else "") or found[1]).lstrip("~!")
