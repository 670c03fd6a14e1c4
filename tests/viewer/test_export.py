"""A run written in other forms: the page opened from disk, Markdown, CSV, JSON, and less of it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Run
from kernel_scientist.agents.cli import main
from kernel_scientist.agents.events import PassagesRetrieved
from kernel_scientist.agents.transcript.opened import OpenedRun
from kernel_scientist.agents.transcript.redaction import Part, Redaction

from .conftest import Runs

MARKS = {"code": "__global__", "literature": "LDS has 32 banks", "paths": "/opt/kernel-scientist"}


def exported(runs: Runs, run: str, form: str, tmp_path: Path, without: str = "") -> str:
    target = tmp_path / f"out.{form}"
    arguments = ["transcript", "export", run, "--runs-dir", str(runs.folder), "-o", str(target)]
    assert main([*arguments, "--without", without]) == 0
    return target.read_text(encoding="utf-8")


def test_the_exported_page_opens_from_disk_without_a_network(
    chromium: Any, runs: Runs, tmp_path: Path
) -> None:
    exported(runs, runs.first, "html", tmp_path)
    context = chromium.new_context(offline=True)
    page = context.new_page()
    faults: list[str] = []
    page.on(
        "console",
        lambda message: faults.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:")) else faults.append(request.url),
    )
    page.goto(f"file://{tmp_path}/out.html")
    page.wait_for_selector("h1 >> text=faster")
    told = page.inner_text("main")
    assert "Where the idea came from" in told and "confirmed in" in told
    for link, title in (
        ("Conversation", "Conversation"),
        ("Lineage", "Lineage"),
        ("Ideas", "Ideas"),
        ("Cost", "Cost"),
        ("Compare", "Two runs"),
    ):
        page.click(f"#nav >> text={link}")
        page.wait_for_selector(f"h1:has-text('{title}')")
        assert page.locator("[role=alert]").count() == 0
    page.click("#nav >> text=Lineage")
    page.click(".candidates >> text=0001")
    page.wait_for_selector(".diff td.added")
    page.click("#nav >> text=Conversation")
    page.locator("summary", has_text="What it was asked").first.click()
    page.wait_for_selector(".item pre >> text=json request")
    page.click("#nav >> text=Search")
    page.fill("#q", '"bank conflicts"')
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits mark")
    context.close()
    assert faults == []


def test_hostile_text_cannot_leave_its_place_in_the_exported_page(
    chromium: Any, runs: Runs, tmp_path: Path
) -> None:
    text = exported(runs, runs.hostile, "html", tmp_path)
    assert "<script>window" not in text and "<img" not in text
    page = chromium.new_page()
    page.goto(f"file://{tmp_path}/out.html#/runs/{runs.hostile}/conversation")
    page.wait_for_selector(".item")
    assert "<script>window.stolen=1</script>" in page.inner_text("main")
    assert page.evaluate("window.stolen") is None
    page.close()


@pytest.mark.parametrize("form", ["html", "md", "json", "csv"])
@pytest.mark.parametrize("part", ["code", "literature", "paths"])
def test_what_is_left_out_is_nowhere(runs: Runs, tmp_path: Path, form: str, part: str) -> None:
    whole = exported(runs, runs.first, form, tmp_path)
    bare = exported(runs, runs.first, form, tmp_path, without=part)
    assert MARKS[part] not in bare
    if form in ("html", "json"):
        assert MARKS[part] in whole
    for kept in set(MARKS) - {part}:
        # What a model was sent quotes code and literature alike, so either goes with the other there.
        assert MARKS[kept] in bare or MARKS[kept] not in whole or form == "md"


@pytest.mark.parametrize("form", ["html", "md", "json", "csv"])
def test_of_a_copy_without_anything_nothing_can_be_read_back(runs: Runs, tmp_path: Path, form: str) -> None:
    """No line of any source, sentence of any passage or path from the root, in whatever field it stands."""
    run = Run.open(runs.first, runs_dir=runs.folder)
    bare = exported(runs, runs.first, form, tmp_path, without="code,literature,paths")
    text = bare.partition('id="embedded">')[2].partition("<")[0] if form == "html" else bare
    code = {line.strip() for one in run.candidates() for line in one.source.splitlines()}
    passages = {
        sentence.strip()
        for event in run.events()
        if isinstance(event, PassagesRetrieved)
        for passage in event.passages
        for sentence in re.split(r"[.\n]", passage.text)
    }
    secrets = [*(line for line in code if len(line) > 24), *(one for one in passages if len(one) > 30)]
    assert len(secrets) > 100
    assert [one for one in secrets if one in text or json.dumps(one)[1:-1] in text] == []
    assert re.findall(r"(?<![\w.:/<])/(?:opt|home|root|usr|tmp|work)/[\w.-]+", text) == []


def test_the_page_without_code_says_so_and_still_opens(chromium: Any, runs: Runs, tmp_path: Path) -> None:
    exported(runs, runs.first, "html", tmp_path, without="code,literature,paths")
    page = chromium.new_page()
    page.goto(f"file://{tmp_path}/out.html")
    page.wait_for_selector("h1 >> text=faster")
    assert "left out of this copy: code, literature, paths" in page.inner_text("header")
    for place in ("/candidates/0001", "/conversation", "/lineage", "/ideas"):
        page.goto(f"file://{tmp_path}/out.html#/runs/{runs.first}{place}")
        page.wait_for_selector("main:not([aria-busy]) h1")
        assert page.locator("[role=alert]").count() == 0, place
    page.close()


def test_json_holds_every_event_and_candidate(runs: Runs, tmp_path: Path) -> None:
    values = json.loads(exported(runs, runs.first, "json", tmp_path))
    run = Run.open(runs.first, runs_dir=runs.folder)
    assert values["events"] == [event.model_dump(mode="json") for event in run.events()]
    assert [one["id"] for one in values["candidates"]] == [one.id for one in run.candidates()]


def test_csv_has_a_row_for_each_candidate_and_no_formula(runs: Runs, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(runs, runs.first, "csv", tmp_path))))
    candidates = Run.open(runs.first, runs_dir=runs.folder).candidates()
    assert [row["id"] for row in rows] == [one.id for one in candidates]
    for row, one in zip(rows, candidates, strict=True):
        assert row["verdict"] == one.verdict
        assert one.evaluation is not None and one.evaluation.speedup is not None
        assert float(row["speedup"]) == one.evaluation.speedup.value
        assert not row["idea"].startswith(("=", "+", "-", "@"))


def test_markdown_tells_the_story_and_quotes_markup(runs: Runs, tmp_path: Path) -> None:
    text = exported(runs, runs.first, "md", tmp_path)
    for expected in (
        "faster",
        "### The idea",
        "### Where it came from",
        "13 of 13 checks",
        "### What came of each strategy",
        "### Which passage moved which experiment",
        "§ ",
        "```diff",
        "| shape |",
    ):
        assert expected in text
    hostile = exported(runs, runs.hostile, "md", tmp_path)
    assert "<script>" not in hostile
    assert "- not done: the loop is unrolled (it was already)" in hostile


def test_redaction_leaves_what_it_is_given_as_it_was(runs: Runs) -> None:
    opened = OpenedRun.of(Run.open(runs.first, runs_dir=runs.folder))
    parts: frozenset[Part] = frozenset(("code", "literature", "paths"))
    events = [event.model_dump(mode="json") for event in opened.record.events(opened.record.entries)]
    before = json.dumps(events)
    Redaction(parts).apply(events)
    assert json.dumps(events) == before
    assert Redaction(frozenset(("paths",))).apply("see /home/me/x.hip, https://a.org/b/c and n/a") == (
        "see [path], https://a.org/b/c and n/a"
    )


@pytest.mark.parametrize(
    "arguments", [("--without", "secrets", "--md"), (), ("-o", "out.pdf"), ("-o", "no/such/out.md")]
)
def test_an_export_that_cannot_be_is_refused(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["transcript", "export", "last", "--runs-dir", str(runs.folder), *arguments]) == 2
    assert list(tmp_path.iterdir()) == []
