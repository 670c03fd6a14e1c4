"""A long run: its index is kept and never wrong, and the first screen is small and comes before the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Run
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.run_lock import RunLock
from kernel_scientist.agents.transcript.filters import EventFilter
from kernel_scientist.agents.transcript.opened import OpenedRun, RunShelf, keep_index
from kernel_scientist.agents.transcript.search import search_record

from .big_run import more_events, write_big_run
from .conftest import serving


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every line that is read as an event."""
    seen: list[int] = []
    read = ev.parse_event

    def counted(line: str | bytes) -> ev.Event:
        seen.append(len(line))
        return read(line)

    monkeypatch.setattr(ev, "parse_event", counted)
    return seen


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "home"))
    return tmp_path / "home/cache/transcripts"


@pytest.fixture
def folder(tmp_path: Path, cache: Path) -> Path:
    return write_big_run(tmp_path / "runs", candidates=90, events=2_500)


def known(opened: OpenedRun) -> dict[str, Any]:
    """All that readers have of a run, but the plans: of these only what is still needed is kept."""
    summary = {name: getattr(opened.summary, name) for name in opened.summary.__slots__}
    record = opened.record
    followed = [
        {lane: [e.seq for e in turn] for lane, turn in record.followed[0].items()},
        *record.followed[1:],
    ]
    return {
        "entries": record.entries,
        "damaged": record.damaged,
        "size": record.size,
        "turns": followed,
        **summary,
    }


def test_the_index_of_a_long_record_is_kept_and_says_the_same(folder: Path, parsed: list[int]) -> None:
    # Arrange
    first = known(OpenedRun.of(Run(folder)))
    assert len(parsed) == len(first["entries"]) > 2_000
    parsed.clear()
    # Act
    again = OpenedRun.of(Run(folder))
    # Assert: only a few events are read once more
    assert len(parsed) < 10
    assert known(again) == first


def test_of_a_record_that_grew_only_the_rest_is_read(folder: Path, parsed: list[int]) -> None:
    # Arrange: the writer is killed in mid-line, and goes on later
    record = folder / "events.jsonl"
    whole = record.read_bytes()
    lines = whole.splitlines(keepends=True)
    record.write_bytes(b"".join(lines[:2_200]) + lines[2_200][:20])
    OpenedRun.of(Run(folder))
    with record.open("r+b") as file:
        file.truncate(len(b"".join(lines[:2_200])))
        file.seek(0, os.SEEK_END)
        file.write(b"".join(lines[2_200:]))
    parsed.clear()
    # Act
    grown = known(OpenedRun.of(Run(folder)))
    # Assert
    assert len(parsed) < len(lines) - 2_200 + 10
    (folder / "events.jsonl").touch()
    os.utime(record, ns=(0, 0))
    assert grown == known(OpenedRun.of(Run(folder)))


def test_a_session_that_ends_leaves_the_index_of_its_long_record(
    folder: Path, parsed: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_index(Run(folder))
    assert len(parsed) > 2_000
    parsed.clear()
    OpenedRun.of(Run(folder))
    assert len(parsed) < 10
    keep_index(Run(tmp_path / "nothing"))
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "nothing\n"))
    (tmp_path / "nothing\n").touch()
    keep_index(Run(folder))


@pytest.mark.parametrize("harm", ["edited", "replaced", "shortened", "garbled", "emptied"])
def test_an_index_that_does_not_hold_is_not_used(
    folder: Path, cache: Path, parsed: list[int], harm: str
) -> None:
    # Arrange
    before = known(OpenedRun.of(Run(folder)))
    record = folder / "events.jsonl"
    (index,) = cache.iterdir()
    lines = record.read_bytes().splitlines(keepends=True)
    if harm == "edited":
        with record.open("r+b") as file:
            file.seek(len(b"".join(lines[:1_000])))
            file.write(b"x" * (len(lines[1_000]) - 1))
    elif harm == "replaced":
        (folder / "new").write_bytes(b"".join(lines))
        (folder / "new").replace(record)
    elif harm == "shortened":
        record.write_bytes(b"".join(lines[:2_100]))
    else:
        index.write_bytes(index.read_bytes()[:-100] if harm == "garbled" else b"")
    parsed.clear()
    # Act
    after = OpenedRun.of(Run(folder))
    # Assert
    assert len(parsed) >= (2_100 if harm == "shortened" else len(lines))
    assert after.record.damaged == (harm == "edited")
    if harm in ("replaced", "garbled", "emptied"):
        assert known(after) == before


def test_a_cache_that_cannot_be_written_hinders_nobody(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "file"))
    assert len(OpenedRun.of(Run(folder)).summary.candidates) == 91


def test_of_the_runs_that_were_opened_only_the_latest_stay_open(tmp_path: Path, cache: Path) -> None:
    names = []
    for number in range(3):
        folder = write_big_run(tmp_path / "runs", candidates=6, events=60)
        names.append(f"run-{number}")
        folder.rename(folder.with_name(names[-1]))
    events = len(OpenedRun.of(Run(tmp_path / "runs/run-0")).record.entries)
    shelf = RunShelf(tmp_path / "runs", most_events=2 * events)
    first = shelf.open("run-0")
    for name in names[1:]:
        shelf.open(name)
    assert [shelf.is_open(name) for name in names] == [False, True, True]
    shelf.open("run-1")
    again = shelf.open("run-0")
    assert [shelf.is_open(name) for name in names] == [True, True, False]
    assert again is not first and known(again) == known(first)
    assert RunShelf(tmp_path / "runs", most_events=0).open("run-2").summary.candidates


def test_words_are_found_wherever_they_lie_in_a_long_record(folder: Path) -> None:
    opened = OpenedRun.of(Run(folder))
    entries = opened.record.entries
    for word in ("idea 1:", "idea 47:", "idea 90:"):
        hits = list(search_record(opened.record, opened.summary, (word,)))
        said = [hit.seq for hit in hits]
        assert said == [e.seq for e, line in opened.record.lines(entries) if word in line.decode().lower()]
        assert said, word
    (hit,) = search_record(opened.record, opened.summary, ("tile = 77\n",))
    assert (hit.field, hit.candidates) == ("source", ("0077",))
    wanted = EventFilter(candidate="0077")
    assert len(list(search_record(opened.record, opened.summary, ("unrolled",), wanted))) == sum(
        entry.kind == "model_call" and "0077" in entry.candidates for entry in entries
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_run(
        tmp_path_factory.mktemp("big") / "runs", candidates=1_200, events=12_000, finished=False
    )


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context()
    yield context.new_page()
    context.close()


WHAT_CAME_WHEN = """
window.came = [];
new MutationObserver(() => {
  for (const what of ["h1", ".chart"])
    if (!window.came.includes(what) && document.querySelector(what)) window.came.push(what);
}).observe(document, {childList: true, subtree: true});
"""


@pytest.mark.slow
def test_the_first_screen_is_small_and_a_live_page_follows(big: Path, page: Any) -> None:
    # Arrange
    sizes: dict[str, int] = {}
    page.on("response", lambda answer: sizes.__setitem__(answer.url, len(answer.body())))
    lock = RunLock(Run(big))
    with serving(big.parent) as server:
        # Act
        page.add_init_script(WHAT_CAME_WHEN)
        page.goto(f"{server.url}#/runs/{big.name}")
        page.wait_for_selector(".chart .best-line")
        came = page.evaluate("window.came")
        # Assert: the result comes first, then the chart, with a mark for some only
        about = next(size for url, size in sizes.items() if url.endswith(f"/api/runs/{big.name}"))
        assert came == ["h1", ".chart"] and about < 400_000
        assert 300 < page.locator(".chart .series a").count() <= 801
        page.evaluate("window.kept = true")
        page.wait_for_selector("#live:not([hidden])")
        # Act: the run goes on
        seq = OpenedRun.of(Run(big)).record.last_seq
        record = (big / "events.jsonl").open("a")
        answered = f"/api/runs/{big.name}"
        with record, page.expect_response(lambda answer: answer.url.endswith(answered)) as news:
            record.write(more_events(seq, 50))
            record.flush()
        # Assert: drawn anew, not loaded anew
        assert news.value.ok and page.evaluate("window.kept") is True
    lock.release(ended=False)


@pytest.mark.slow
def test_all_candidates_are_a_page_at_a_time(big: Path, page: Any) -> None:
    with serving(big.parent) as server:
        page.goto(f"{server.url}#/runs/{big.name}/lineage")
        page.wait_for_selector("table.candidates, .candidates table")
        assert page.locator(".candidates tbody tr").count() == 200
        page.click("nav.pager >> text=Later")
        page.wait_for_selector(".pager:has-text('201 to 400')")
