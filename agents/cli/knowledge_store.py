"""``kernel-scientist knowledge``: look into the store, and keep it in order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .adding import SOME_FAILED
from .knowledge import print_passage
from .knowledge_options import chroma_option, embedder_option, flags, open_knowledge
from .output import echo, echo_all, json_option, print_json, remark
from .text import columns, count, one_line, size_text

if TYPE_CHECKING:
    from kernel_scientist.knowledge import Document, KnowledgeStatus, Passage, Salvaged

__all__ = ["export", "import_command", "rebuild", "remove", "show", "status"]


@click.command()
@click.argument("document", metavar="DOCUMENT")
@chroma_option
@json_option
def show(document: str, as_json: bool) -> int:
    """Print the passages of DOCUMENT as the agents see them, each with where its facts came from and when
    they were looked up.

    DOCUMENT is an id from 'list', the beginning of one, the file it was added from, or one passage ('lds#2').
    """
    with open_knowledge(recorded=True) as base:
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
    with open_knowledge(recorded=True) as base:
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
    with open_knowledge(recorded=True) as base:
        found = base.status()
    if as_json:
        print_json(asdict(found))
    else:
        echo_all(columns(_status_rows(found)))
        if found.embedder != (chosen := _chosen_embedder() or found.embedder):
            remark(
                f"The embedding model {one_line(chosen)} is chosen here; embed all anew by it with "
                "'kernel-scientist knowledge rebuild', or leave the choice out."
            )
        if found.damage:
            remark("Repair it with 'kernel-scientist knowledge rebuild', which keeps the damaged file.")
    return 2 if found.damage else 0


@click.command()
@chroma_option
@embedder_option
@json_option
def rebuild(as_json: bool) -> int:
    """Make the vector index anew from the database, and first repair the database when it is damaged.

    With another --embedder than the knowledge base was made with, all passages are embedded anew by it. What
    was stopped half way goes on there the next time.

    Documents that can be read as a whole are saved, the others are named, and the damaged file is kept. Exit
    code 6 when documents were lost. Nobody else should use the knowledge base meanwhile.
    """
    from kernel_scientist.knowledge import KnowledgeBase

    from .adding import telling_passages

    repaired = KnowledgeBase.repair()
    with open_knowledge(reembed=True, progress=telling_passages()) as base:
        base.rebuild()
        found = base.status()
    lost = repaired.lost if repaired else ()
    if as_json:
        print_json({**asdict(found), "repaired": asdict(repaired) if repaired else None})
    else:
        echo_all(columns(_status_rows(found)))
        if repaired:
            _say_repaired(repaired)
    return SOME_FAILED if lost else 0


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@chroma_option
@json_option
def export(file: Path, as_json: bool) -> int:
    """Write all documents but the bundled ones to FILE: passages, citations, and vectors with their model's
    name.

    FILE is a zip archive of JSON and NumPy files. One that exists is replaced.
    """
    with open_knowledge(recorded=True) as base:
        documents = base.export(file)
    if as_json:
        print_json({"file": str(file), "documents": [asdict(document) for document in documents]})
    else:
        echo(f"{count(len(documents), 'document')} in {one_line(str(file))}")
    return 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--replace", is_flag=True, help="Take FILE's version where it differs.")
@chroma_option
@embedder_option
@json_option
def import_command(file: Path, replace: bool, as_json: bool) -> int:
    """Merge the documents of FILE, which 'knowledge export' wrote, into the knowledge base.

    What is there already, by its content, is left as it is. Exit code 6 when some documents were not taken,
    since another version of them is there.
    """
    with open_knowledge() as base:
        report = base.import_(file, replace=replace)
    if as_json:
        print_json({"items": [asdict(item) for item in report.items]})
    else:
        rows = [
            (item.status, f"{item.chunks} passages", one_line(item.source), one_line(item.reason))
            for item in report.items
        ]
        echo_all(columns(rows))
    return SOME_FAILED if report.failed else 0


def _chosen_embedder() -> str | None:
    """The name of the model that the options, the environment or the configuration file choose, if any."""
    from kernel_scientist.agents.config import load_config
    from kernel_scientist.knowledge.embedding import make_embedder

    chosen = load_config(flags=flags()).embedder
    return make_embedder(chosen).name if chosen and chosen != "recorded" else None


def _say_repaired(repaired: Salvaged) -> None:
    saved = count(repaired.documents, "document")
    remark(f"The database was damaged: {saved} saved; the damaged file is {one_line(repaired.damaged)}.")
    for source in repaired.lost:
        remark(f"  lost: {one_line(source)}")
    if repaired.lost:
        remark("Add what was lost again with 'kernel-scientist knowledge add'.")


def _status_rows(status: KnowledgeStatus) -> list[tuple[str, str]]:
    others = ", ".join(f"{name} ({number})" for name, number in sorted(status.vectors.items()))
    rows = [
        ("folder", f"{one_line(status.path)} ({size_text(status.size_bytes)})"),
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
