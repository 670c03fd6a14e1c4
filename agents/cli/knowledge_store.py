"""``kernel-scientist knowledge``: look into the store, and keep it in order."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .chroma import chroma_option
from .knowledge import open_knowledge, print_passage
from .output import echo, echo_all, json_option, print_json, remark
from .text import columns, count, one_line

if TYPE_CHECKING:
    from kernel_scientist.knowledge import Document, KnowledgeStatus, Passage

__all__ = ["rebuild", "remove", "show", "status"]


@click.command()
@click.argument("document", metavar="DOCUMENT")
@chroma_option
@json_option
def show(document: str, as_json: bool) -> int:
    """Print the passages of DOCUMENT as the agents see them, each with where its facts came from and when
    they were looked up.

    DOCUMENT is an id from 'list', the beginning of one, the file it was added from, or one passage ('lds#2').
    """
    with open_knowledge() as base:
        name, _, position = document.rpartition("#")
        passages = [base.passage(document)] if name and position.isdigit() else base.passages(document)
        shown = base.document(passages[0].document_id) if passages else base.document(document)
    if as_json:
        print_json({"document": asdict(shown), "passages": [asdict(passage) for passage in passages]})
        return 0
    _print_document(shown)
    for passage in passages:
        print_passage(passage, f"  ({count(passage.tokens, 'token')})", listed=bool(passage.citation.sources))
        _print_sources(passage)
    return 0


@click.command()
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@chroma_option
@json_option
def remove(documents: tuple[str, ...], as_json: bool) -> int:
    """Forget each DOCUMENT with its passages: all of them, or none when one is not there.

    The files they were added from stay where they are.
    """
    with open_knowledge() as base:
        removed = base.remove(*documents)
    if as_json:
        print_json([asdict(document) for document in removed])
    else:
        rows = [("removed", one.id, f"{one.chunks} passages", one_line(one.title)) for one in removed]
        echo_all(columns(rows))
    return 0


@click.command()
@chroma_option
@json_option
def status(as_json: bool) -> int:
    """Show the size of the knowledge base, and whether its database and vector index are whole.

    Exit code 2 when the database is damaged.
    """
    with open_knowledge() as base:
        found = base.status()
    if as_json:
        print_json(asdict(found))
    else:
        echo_all(columns(_status_rows(found)))
        if found.damage:
            remark("Repair it with 'kernel-scientist knowledge rebuild', which keeps the damaged file.")
    return 2 if found.damage else 0


@click.command()
@chroma_option
@json_option
def rebuild(as_json: bool) -> int:
    """Make the vector index anew from the database."""
    with open_knowledge() as base:
        base.rebuild()
        found = base.status()
    if as_json:
        print_json(asdict(found))
    else:
        echo_all(columns(_status_rows(found)))
    return 0


def _status_rows(status: KnowledgeStatus) -> list[tuple[str, str]]:
    others = ", ".join(f"{name} ({number})" for name, number in sorted(status.vectors.items()))
    rows = [
        ("folder", f"{one_line(status.path)} ({status.size_bytes / 1e6:.1f} MB)"),
        ("documents", f"{status.documents} ({status.bundled} bundled, {status.experience} experience)"),
        ("passages", str(status.chunks)),
        ("database", one_line(status.damage) if status.damage else "whole"),
        ("vector index", f"{status.indexed} indexed, {status.waiting} waiting"),
        ("embedding model", one_line(status.embedder)),
    ]
    if set(status.vectors) - {status.embedder}:
        rows.append(("vectors", one_line(others)))
    if status.note:
        rows.append(("note", one_line(status.note)))
    return rows


def _print_document(document: Document) -> None:
    rows = [
        ("title", one_line(document.title)),
        ("kind", f"{document.kind}{', bundled' if document.bundled else ''}"),
        ("source", one_line(document.source)),
        ("added", f"{document.added_at:%Y-%m-%d %H:%M} UTC"),
    ]
    for name, values in (("tags", document.tags), ("architectures", document.architectures)):
        if values:
            rows.append((name, one_line(", ".join(values))))
    if document.language:
        rows.append(("language", document.language))
    echo(document.id, "heading")
    echo_all(f"  {line}" for line in columns(rows))
    echo()


def _print_sources(passage: Passage) -> None:
    for source in passage.citation.sources:
        looked_up = f", looked up {source.looked_up}" if source.looked_up else ""
        echo(f"  [{one_line(source.id)}] {one_line(source.title)}, {one_line(source.url)}{looked_up}", "dim")
    if passage.citation.sources:
        echo()
