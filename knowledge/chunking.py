"""Sections to chunks: along the document's own structure, within a token limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .loaders import LoadedDocument, Section
from .records import Source
from .tokens import count_tokens, cut_to_tokens

__all__ = ["CHUNK_TOKENS", "Chunk", "chunk", "embedded_text", "without_marks"]

# About what the embedding model reads of a text; measured chunks of 400 tokens and more retrieve worse with
# it.
CHUNK_TOKENS = 320
_MARK = re.compile(r"\s?\[(\w{1,12}(?:\s*,\s*\w{1,12})*)\](?!\()")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TABLE_HEAD = re.compile(r"\|.*\|\n\|(?:\s*:?-{3,}:?\s*\|)+\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"(])")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one section; `sources` are those whose marks its text holds."""

    section: str
    text: str
    page: int | None
    tokens: int
    sources: tuple[Source, ...] = ()


def chunk(document: LoadedDocument, limit: int = CHUNK_TOKENS) -> list[Chunk]:
    """The chunks of `document` in reading order, none of more than `limit` tokens."""
    known = {source.id: source for source in document.sources}
    chunks: list[Chunk] = []
    for section in document.sections:
        heading = " > ".join(part for part in section.path if part)
        for part in _by_page(section, limit):
            for text in _pieces(part, limit):
                cited = tuple(known[mark] for mark in _marks(text) if mark in known)
                chunks.append(Chunk(heading, text, part.page, count_tokens(text), cited))
    return chunks


def embedded_text(title: str, chunk: Chunk) -> str:
    """What the embedding model reads: the chunk below its title and headings, without citation marks."""
    heading = f"{title} > {chunk.section}" if chunk.section else title
    return f"{heading}\n{without_marks(chunk.text, chunk.sources)}"


def without_marks(text: str, sources: tuple[Source, ...]) -> str:
    """`text` without the marks, such as ``[s1]`` or ``[s1, s2]``, of `sources`."""
    known = {source.id for source in sources}

    def drop(found: re.Match[str]) -> str:
        return "" if all(mark.strip() in known for mark in found[1].split(",")) else found[0]

    return _MARK.sub(drop, text) if known else text


def _marks(text: str) -> list[str]:
    """The marks in `text`, each once, in order."""
    return list(dict.fromkeys(mark.strip() for found in _MARK.finditer(text) for mark in found[1].split(",")))


def _by_page(section: Section, limit: int) -> Iterator[Section]:
    """A long section page by page, so that each chunk is of one page; one that is a chunk anyway whole."""
    if len(section.page_starts) < 2 or count_tokens(section.text) <= limit:
        yield section
        return
    starts = section.page_starts
    for (offset, page), end in zip(starts, [*(start for start, _ in starts[1:]), None], strict=True):
        yield replace(section, text=section.text[offset:end], page=page, page_starts=())


def _pieces(section: Section, limit: int) -> Iterator[str]:
    text = section.text.strip("\n").rstrip()
    if not text.strip():
        return
    if count_tokens(text) <= limit:
        yield text
        return
    blocks = text.split("\n") if section.verbatim else _blocks(text)
    yield from _packed(blocks, "\n" if section.verbatim else "\n\n", limit, _split_block)


def _packed(
    parts: list[str], joint: str, limit: int, split: Callable[[str, int], Iterator[str]]
) -> Iterator[str]:
    """Join neighbours up to the limit; a part over it is split further."""
    held: list[str] = []
    size = 0
    joint_tokens = count_tokens(joint)
    for part in parts:
        tokens = count_tokens(part) + joint_tokens
        if held and size + tokens > limit:
            yield joint.join(held)
            held, size = [], 0
        if tokens > limit:
            yield from split(part, limit)
        else:
            held.append(part)
            size += tokens
    if any(part.strip() for part in held):
        yield joint.join(held)


def _blocks(text: str) -> list[str]:
    """Paragraphs, lists, tables and fenced code, each whole."""
    blocks: list[list[str]] = [[]]
    fence: str | None = None
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and fence is not None and mark[1].startswith(fence):
            fence = None
        if not line.strip() and fence is None:
            blocks.append([])
        else:
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks if block]


def _split_block(block: str, limit: int) -> Iterator[str]:
    """A block between its lines, a line between its sentences, a sentence between words.

    Each piece of a table has the table's head.
    """
    lines = block.split("\n")
    head = "\n".join(lines[:2]) + "\n"
    if len(lines) > 3 and _TABLE_HEAD.fullmatch(head) and count_tokens(head) < limit // 2:
        yield from (
            head + rows for rows in _packed(lines[2:], "\n", limit - count_tokens(head), _split_block)
        )
        return
    if len(lines) > 1:
        yield from _packed(lines, "\n", limit, _split_block)
        return
    sentences = _SENTENCE_END.split(block)
    if len(sentences) > 1:
        yield from _packed(sentences, " ", limit, _split_block)
        return
    rest = block
    while rest.strip():
        # One letter is at most a few tokens, so this always moves on.
        piece = cut_to_tokens(rest, limit) or rest[:1]
        yield piece.strip()
        rest = rest[len(piece) :]
