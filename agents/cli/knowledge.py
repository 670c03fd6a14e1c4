"""``kernel-scientist knowledge``: add literature, list it, search it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from kernel_scientist.knowledge.languages import LANGUAGES, Language

from .app import LazyCommand, LazyGroup
from .knowledge_options import chroma_option, embedder_option, open_knowledge
from .output import echo, echo_all, json_option, print_json, remark
from .text import clean, columns, indent, one_line

if TYPE_CHECKING:
    from kernel_scientist.knowledge import Passage

__all__ = [
    "add",
    "knowledge",
    "list_command",
    "print_passage",
    "retry",
    "search",
]


@click.group(
    cls=LazyGroup,
    lazy={
        "add": LazyCommand("knowledge:add", "Add literature: files, folders, web pages, arXiv papers."),
        "retry": LazyCommand("knowledge:retry", "Try again to add what failed."),
        "list": LazyCommand("knowledge:list_command", "List the documents."),
        "show": LazyCommand("knowledge_store:show", "Print a document's passages and their sources."),
        "search": LazyCommand("knowledge:search", "Search as the Researcher does."),
        "remove": LazyCommand("knowledge_store:remove", "Forget documents."),
        "status": LazyCommand("knowledge_store:status", "Show sizes, and whether all is whole."),
        "rebuild": LazyCommand("knowledge_store:rebuild", "Repair the knowledge base, or its vector index."),
        "export": LazyCommand("knowledge_store:export", "Write your documents as one portable file."),
        "learn": LazyCommand("experience:learn", "Keep what a run found out."),
        "import": LazyCommand("knowledge_store:import_command", "Merge such a file."),
    },
)
def knowledge() -> None:
    """Add literature, list it, search it.

    A library of notes on MI300 and on fast HIP kernels is there from the start.
    """


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Mark what is added; may be repeated.")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add what this TOML, JSON or CSV file names, with title, authors, year, source and tags.",
)
@chroma_option
@embedder_option
@json_option
def add(sources: tuple[str, ...], tags: tuple[str, ...], manifest: Path | None, as_json: bool) -> int:
    """Add each SOURCE to the knowledge base: a file, a folder, a web address or an arXiv identifier.

    Adding again is free; a changed document replaces its old self. Exit code 6 when some could not be added;
    the others are, and 'knowledge retry' tries those again.
    """
    if not sources and manifest is None:
        raise click.UsageError("Name something to add: files, folders, addresses, or --manifest FILE.")
    _require_words("SOURCE...", sources)
    _require_words("--tag", tags)
    from .adding import report_added, watching

    with open_knowledge() as base, watching() as progress:
        report = base.add(*sources, tags=tags, manifest=manifest, progress=progress)
        note = base.note
    return report_added(report, as_json, note)


@click.command()
@click.option("--list", "only_list", is_flag=True, help="Only list what failed, and why.")
@click.option("--forget", is_flag=True, help="Do not try SOURCE, or all that failed, any more.")
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@chroma_option
@embedder_option
@json_option
def retry(only_list: bool, forget: bool, sources: tuple[str, ...], as_json: bool) -> int:
    """Try again to add what failed: all of it, or each SOURCE as '--list' names it.

    Exit code 6 when some could not be added this time either.
    """
    if only_list and forget:
        raise click.UsageError("Give either --list or --forget.")
    from .adding import report_added, report_failures, watching

    with open_knowledge(recorded=forget or only_list) as base:
        if forget:
            base.forget_failures(*sources)
        if forget or only_list:
            report_failures(base.failures(), as_json)
            return 0
        with watching() as progress:
            report = base.retry(*sources, progress=progress)
        note = base.note
    return report_added(report, as_json, note)


@click.command("list")
@chroma_option
@json_option
def list_command(as_json: bool) -> int:
    """List the documents of the knowledge base."""
    with open_knowledge(recorded=True) as base:
        documents = base.documents()
    if as_json:
        print_json([asdict(document) for document in documents])
        return 0
    rows = [
        (one.id, one.kind, one_line(one.title), _shortened(one.tags), one_line(one.source))
        for one in documents
    ]
    echo_all(columns(rows, header=("document", "kind", "title", "tags", "source")))
    return 0


@click.command()
@click.argument("query", nargs=-1, required=True, metavar="QUERY...")
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=8,
    show_default=True,
    metavar="N",
    help="How many passages.",
)
@click.option("--kind", type=click.Choice(["literature", "experience"]), help="Only this kind of document.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; may be repeated."
)
@click.option(
    "--arch",
    "architectures",
    multiple=True,
    metavar="ARCH",
    help="Only documents on this architecture, such as gfx942, or on none in particular; may be repeated.",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="Only source code in this language.",
)
@chroma_option
@embedder_option
@json_option
def search(
    query: tuple[str, ...],
    limit: int,
    kind: Literal["literature", "experience"] | None,
    tags: tuple[str, ...],
    architectures: tuple[str, ...],
    language: Language | None,
    as_json: bool,
) -> int:
    """Search the knowledge base for QUERY, best passage first."""
    _require_words("QUERY...", [" ".join(query)])
    with open_knowledge() as base:
        passages = base.search(
            " ".join(query),
            limit=limit,
            kind=kind,
            tags=tags,
            architectures=architectures,
            language=language,
        )
        note = base.note
    if note:
        remark(f"Note: {one_line(note)}.")
    if as_json:
        print_json([asdict(passage) for passage in passages])
        return 0
    if not passages:
        remark("Nothing was found; try other words, or add literature with 'kernel-scientist knowledge add'.")
    for passage in passages:
        print_passage(passage, f"  (score {passage.score:.3f}: {', '.join(passage.reasons)})")
    return 0


def _require_words(name: str, values: Sequence[str]) -> None:
    """Refuse an empty argument before the knowledge base is opened, which may take a while."""
    if any(not value.strip() for value in values):
        raise click.BadParameter("it is empty", param_hint=f"'{name}'")


def _shortened(tags: Sequence[str], shown: int = 4) -> str:
    more = f", {len(tags) - shown} more" if len(tags) > shown else ""
    return ", ".join(tags[:shown]) + more


def print_passage(passage: Passage, more: str = "", *, listed: bool = False) -> None:
    """Print a passage below its id, citation and source; the latter not when it will be `listed` apart."""
    cited = passage.citation
    place = "".join(
        [
            f", {cited.section}" if cited.section else "",
            f", page {cited.page}" if cited.page is not None else "",
        ]
    )
    echo(
        f"{passage.id}  {one_line(cited.title + place)}{more}",
        "heading",
    )
    if cited.source and not listed:
        looked_up = f", looked up {cited.looked_up}" if cited.looked_up else ""
        echo(f"  {one_line(str(cited.source))}{looked_up}", "dim")
    echo(indent(clean(passage.text).strip()))
    echo()
