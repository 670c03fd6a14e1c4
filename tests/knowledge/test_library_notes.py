"""The bundled notes: every fact names a source that the note declares, and every declared source is used."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kernel_scientist.knowledge.library import library_notes
from kernel_scientist.knowledge.loaders import load

LEAST_NOTES = 60
SECTION_WORDS = range(50, 271)
MARK = re.compile(r"\[(s\d+)\]")


@dataclass(frozen=True, slots=True)
class Note:
    path: Path
    settings: dict[str, Any]
    body: str

    @property
    def sources(self) -> list[dict[str, str]]:
        return list(self.settings["sources"])

    def sections(self) -> Iterator[tuple[str, str]]:
        """Each heading and the text below it."""
        for part in re.split(r"^## ", self.body, flags=re.MULTILINE)[1:]:
            heading, _, text = part.partition("\n")
            yield heading, text


def read(path: Path) -> Note:
    before, front_matter, body = path.read_text(encoding="utf-8").split("+++\n", 2)
    assert before == "", f"{path.name} does not open with front matter"
    return Note(path, tomllib.loads(front_matter), body)


@pytest.fixture(params=library_notes(), ids=lambda path: path.stem)
def note(request: pytest.FixtureRequest) -> Note:
    return read(request.param)


def test_there_are_enough_notes() -> None:
    assert len(library_notes()) >= LEAST_NOTES


def test_no_two_notes_share_a_title() -> None:
    titles = Counter(read(path).settings["title"].casefold() for path in library_notes())
    assert [title for title, count in titles.items() if count > 1] == []


def test_front_matter_holds_title_tags_architectures_and_sources(note: Note) -> None:
    assert set(note.settings) == {"title", "tags", "architectures", "sources"}
    for key in ("tags", "architectures", "sources"):
        assert note.settings[key], f"{key} is empty"
    for tags in (note.settings["tags"], note.settings["architectures"]):
        assert len(tags) == len(set(tags))
    assert all(re.fullmatch(r"gfx\w+", name) for name in note.settings["architectures"])


def test_marks_and_declared_sources_are_the_same(note: Note) -> None:
    declared = [source["id"] for source in note.sources]
    assert len(declared) == len(set(declared))
    assert set(MARK.findall(note.body)) == set(declared)


def test_every_section_cites_a_source(note: Note) -> None:
    assert [heading for heading, text in note.sections() if not MARK.search(text)] == []


def test_sources_have_a_title_a_public_https_url_and_the_day_they_were_looked_up(note: Note) -> None:
    for source in note.sources:
        assert set(source) == {"id", "title", "url", "looked_up"}
        url = urlsplit(source["url"])
        assert url.scheme == "https", source["url"]
        assert "." in (url.hostname or ""), source["url"]
        assert source["title"].strip()
        assert date.fromisoformat(source["looked_up"]).isoformat() == source["looked_up"]


def test_a_source_has_one_title_and_one_url_in_all_notes() -> None:
    sources = {(source["title"], source["url"]) for path in library_notes() for source in read(path).sources}
    for count in (Counter(title for title, _ in sources), Counter(url for _, url in sources)):
        assert [name for name, times in count.items() if times > 1] == []


def test_sections_are_short_enough_to_be_one_or_two_passages(note: Note) -> None:
    words = {heading: len(text.split()) for heading, text in note.sections()}
    assert {heading: count for heading, count in words.items() if count not in SECTION_WORDS} == {}


def test_the_loader_reads_the_note_as_it_stands(note: Note) -> None:
    _, document = load(note.path)

    assert document.title == note.settings["title"]
    assert [source.url for source in document.sources] == [source["url"] for source in note.sources]
    assert [section.path[-1] for section in document.sections] == [heading for heading, _ in note.sections()]
