"""The page of real runs in a real browser: every view, every kind of link, keys, search, hostile text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from kernel_scientist.agents.viewer.server import PageServer

from ..cli.recorded import write_run
from .conftest import Runs, serving

VIEWS = ("", "/conversation", "/lineage", "/candidates/0001", "/ideas", "/cost", "/compare", "/search")

STORY = (
    "99 % confidence", "confirmed in", "Why it stopped", "all 3 generations are done", "Best kernel",
    "Checks passed", "Cost", "Time", "Which idea made it faster", "TILE_M", "Where the idea came from",
    "citing", "Why the figure can be believed", "nobody knew beforehand", "speed of light", "caged",
    "predict nothing for an MI300",
)  # fmt: skip


@pytest.fixture
def page(chromium: Any, server: PageServer) -> Iterator[Any]:
    """A page that fails its test when the console held an error, or anybody else was asked for anything."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    faults: list[str] = []
    found = context.new_page()
    found.on(
        "console",
        lambda message: faults.append(message.text) if message.type in ("error", "warning") else None,
    )
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on(
        "request",
        lambda request: None if request.url.startswith((server.url, "data:")) else faults.append(request.url),
    )
    yield found
    context.close()
    assert faults == []


def go(page: Any, server: PageServer, place: str) -> None:
    page.goto("about:blank")
    page.goto(f"{server.url}#{place}")
    settled(page)


def settled(page: Any) -> None:
    page.wait_for_selector("main:not([aria-busy]) h1")


def test_the_first_screen_tells_the_idea_its_source_and_why_to_believe_the_figure(
    page: Any, server: PageServer, runs: Runs
) -> None:
    go(page, server, f"/runs/{runs.first}")
    assert "faster" in page.inner_text("h1")
    told = page.inner_text("main")
    for expected in STORY:
        assert expected in told, expected
    assert page.locator("blockquote").first.inner_text().strip()
    assert page.locator("svg.chart").count() >= 2


def test_every_link_of_every_view_leads_somewhere(page: Any, server: PageServer, runs: Runs) -> None:
    seen: set[str] = set()
    waiting = ["#/runs", *(f"#/runs/{runs.first}{view}" for view in VIEWS)]
    kinds: dict[str, int] = {}
    while waiting:
        place = waiting.pop()
        path, _, query = place.partition("?")
        kind = f"{path.split('/')[3:4]}{sorted(part.split('=')[0] for part in query.split('&'))}"
        kinds[kind] = kinds.get(kind, 0) + 1
        if place in seen or kinds[kind] > 3:
            continue
        seen.add(place)
        page.evaluate("place => { location.hash = place }", place) if page.url.startswith("http") else go(
            page, server, place.removeprefix("#")
        )
        page.wait_for_url(lambda url, place=place: url.endswith(place))
        settled(page)
        assert page.locator("[role=alert]").count() == 0, place
        for link in page.eval_on_selector_all(
            "a[href^='#/']", "all => all.map(one => one.getAttribute('href'))"
        ):
            waiting.append(link)
    assert {"conversation", "lineage", "candidates", "ideas", "cost", "compare", "search"} <= {
        place.split("?")[0].split("/")[3] for place in seen if place.count("/") > 2
    }
    assert any("strategy=" in place for place in seen)
    assert any("event=" in place for place in seen) and any("against=" in place for place in seen)


def test_a_figure_leads_to_its_event_in_the_conversation(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}")
    reference = page.locator(".lead .ref")
    number = reference.inner_text().removeprefix("#")
    reference.click()
    page.wait_for_selector(f"#event-{number}.aimed")
    assert "fresh pairs" in page.inner_text(f"#event-{number}")


def test_the_conversation_is_filtered_by_the_address_and_pairs_calls_with_results(
    page: Any, server: PageServer, runs: Runs
) -> None:
    go(page, server, f"/runs/{runs.first}/conversation?agent=benchmarker&kind=tool_call")
    items = page.locator(".item")
    assert items.count() >= 2
    assert set(page.locator(".item .who").all_inner_texts()) == {"Benchmarker"}
    items.first.locator("summary", has_text="Its result").click()
    page.wait_for_selector(".item pre")
    assert '"verdict"' in items.first.locator("pre").inner_text()
    page.select_option("select[name=kind]", "message")
    page.wait_for_url(re.compile("kind=message"))
    page.wait_for_selector(".item.message")
    assert page.locator(".item.tool_call").count() == 0


def test_a_request_is_fetched_whole_when_it_is_opened(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}/conversation?agent=selector&kind=model_call")
    assert "json request" not in page.inner_text("main")
    page.locator("summary", has_text="What it was asked").first.click()
    page.wait_for_selector(".item pre >> text=json request")


def test_cited_passages_open_at_their_place(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}/conversation?kind=passages_retrieved")
    page.locator(".item summary").first.click()
    page.locator(".item .passage summary").first.click()
    page.wait_for_selector(".item blockquote")
    assert page.locator(".item .sources a").first.get_attribute("rel") == "noopener noreferrer nofollow"


def test_a_candidate_shows_code_changes_evidence_and_prediction(
    page: Any, server: PageServer, runs: Runs
) -> None:
    go(page, server, f"/runs/{runs.first}/candidates/0001")
    assert page.locator(".diff td.added").count() and page.locator(".diff td.removed").count()
    told = page.inner_text("main")
    for expected in ("The plan", "Predicted", "Checks", "gfx942", "VGPRs", "Compile log", "Made from"):
        assert expected in told, expected
    page.click("text=Show as one column")
    assert page.locator(".diff table.unified").count() == 1
    page.select_option("#against", "0002")
    page.wait_for_url(re.compile("against=0002"))
    page.wait_for_selector(".diff >> text=0002")


def test_the_ideas_tell_what_came_of_each_strategy_and_which_passage_moved_which_experiment(
    page: Any, server: PageServer, runs: Runs
) -> None:
    go(page, server, f"/runs/{runs.first}/ideas")
    assert page.locator("table.figures tbody tr").count() >= 2
    passages = page.locator(".moved > li")
    assert passages.count() >= 2 and "§" in passages.first.inner_text()
    passages.first.locator("summary").click()
    passages.first.locator("blockquote").wait_for()
    experiments = [one.split() for one in passages.first.locator(".experiments-moved li").all_inner_texts()]
    uplifts = [float(one[1].replace("\N{MINUS SIGN}", "-")) for one in experiments]
    assert uplifts == sorted(uplifts, reverse=True)
    page.locator("table.figures a[href*=strategy]").first.click()
    page.wait_for_selector(".chip[aria-label^=strategy]")
    shown = page.locator("table.candidates tbody tr").count()
    page.click(".chip[aria-label^=strategy]")
    page.wait_for_selector(".chip[aria-label^=strategy]", state="detached")
    assert page.locator("table.candidates tbody tr").count() > shown


def test_a_lane_is_chosen_where_there_are_several(chromium: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    lanes = [line.replace('"lane":0', f'"lane":{1 + place % 2}') for place, line in enumerate(lines)]
    (folder / "events.jsonl").write_text("".join(lanes))
    with serving(folder.parent) as server:
        page = chromium.new_page()
        go(page, server, f"/runs/{folder.name}/conversation")
        page.select_option("select[name=lane]", "2")
        page.wait_for_url(re.compile("lane=2"))
        settled(page)
        heads = page.locator(".item .meta").all_inner_texts()
        assert heads and all("lane 2" in one for one in heads)
        page.close()


def test_a_huge_message_is_there_in_parts_and_whole(chromium: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    words = "word " * 60_000
    event = {
        "kind": "tool_call", "seq": 90, "time": "2026-01-02T03:04:05Z", "generation": 1, "agent": "coder",
        "tool": "look", "arguments": {"name": "x" * 3_000}, "result": words + "the end", "seconds": 0.1,
    }  # fmt: skip
    with (folder / "events.jsonl").open("a") as record:
        record.write(json.dumps(event) + "\n")
    with serving(folder.parent) as server:
        page = chromium.new_context(viewport={"width": 390, "height": 800}).new_page()
        go(page, server, f"/runs/{folder.name}/conversation?kind=tool_call")
        page.locator("summary", has_text="Its result").click()
        more = page.locator("summary", has_text="more characters")
        assert "296,007 more characters" in more.inner_text()
        more.click()
        page.wait_for_selector(".item pre:has-text('the end')")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.context.close()


def test_a_run_that_found_nothing_tells_what_was_tried(chromium: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    info = json.loads((folder / "run.json").read_text())
    told = {"status": "not_improved", "stop_reason": "the one generation is done", "best": None}
    (folder / "run.json").write_text(json.dumps({**info, **told}))
    with serving(folder.parent) as server:
        page = chromium.new_page()
        go(page, server, f"/runs/{folder.name}")
        assert "no faster kernel was found" in page.inner_text("h1")
        rows = page.locator("table.candidates tbody tr").all_inner_texts()
        assert len(rows) == 2 and "Larger tiles" in rows[0]
        page.close()


def test_a_damaged_run_is_shown_with_what_is_left_and_an_unknown_one_is_said(
    chromium: Any, tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "runs")
    (folder / "run.json").write_text('{"id": "x", "sta')
    record = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(b"".join([*record[:-2], b"\xff garbage\n", record[-1][:30]]))
    with serving(folder.parent) as server:
        page = chromium.new_page()
        go(page, server, "/runs")
        assert "is damaged" in page.inner_text(".fault-cell")
        go(page, server, f"/runs/{folder.name}")
        assert page.locator("ul.notice li").count() == 2
        go(page, server, f"/runs/{folder.name}/conversation")
        assert page.locator(".item").count() >= 10
        go(page, server, "/runs/nosuch")
        assert "There is no run 'nosuch' here." in page.inner_text("[role=alert]")
        assert page.locator("#live").is_hidden()
        page.close()


def test_on_a_phone_the_present_view_is_in_sight(chromium: Any, server: PageServer, runs: Runs) -> None:
    page = chromium.new_context(viewport={"width": 390, "height": 800}).new_page()
    for view in ("/search", "/cost", ""):
        go(page, server, f"/runs/{runs.first}{view}")
        box = page.locator("#nav [aria-current]").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, view
    page.context.close()


def test_the_coders_report_is_told_point_by_point(page: Any, server: PageServer, runs: Runs) -> None:
    for place in (
        f"/runs/{runs.hostile}/candidates/0002",
        f"/runs/{runs.hostile}/conversation?candidate=0002",
    ):
        go(page, server, place)
        told = page.inner_text("main")
        assert "done: TILE becomes 32" in told and "not done: the loop is unrolled (it was already)" in told


def test_search_finds_marks_and_leads_there(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}/conversation")
    page.keyboard.press("/")
    page.wait_for_selector("#q:focus")
    page.keyboard.type("bank conflicts")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found")
    assert page.locator(".hits mark").first.inner_text().lower() in ("bank", "conflicts")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('.hits > li')")
    page.locator(".hits a", has_text="passages retrieved").first.click()
    page.wait_for_selector(".item.aimed")
    go(page, server, f"/search?q={quote('hidden')}")
    assert runs.hostile in page.inner_text(".hits")


def test_two_runs_are_laid_side_by_side(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}/compare")
    page.select_option("#other", runs.second)
    page.wait_for_selector("table.two")
    told = page.inner_text("main")
    assert "Both started from the same kernel" in told
    assert page.locator(".series-1 .point").count() >= 2
    page.select_option("#other", runs.hostile)
    page.wait_for_selector("main .notice")
    assert "cannot be compared" in page.inner_text("main .notice")


def test_keys_move_through_the_views(page: Any, server: PageServer, runs: Runs) -> None:
    go(page, server, f"/runs/{runs.first}")
    for key, title in (
        ("2", "Conversation"),
        ("3", "Lineage"),
        ("4", "Ideas"),
        ("5", "Cost"),
        ("6", "Two runs"),
        ("7", "Search"),
        ("1", "faster"),
        ("r", "Runs"),
    ):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(key)
        page.wait_for_selector(f"h1:has-text('{title}')")
    go(page, server, f"/runs/{runs.first}/conversation")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "event-2"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "event-1"
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_hostile_text_is_shown_as_text(page: Any, server: PageServer, runs: Runs) -> None:
    for view in ("/conversation", "/candidates/0001", "/lineage", ""):
        go(page, server, f"/runs/{runs.hostile}{view}")
        opened = "all => all.forEach(one => { one.open = true })"
        while page.locator("main details:not([open])").count():
            page.eval_on_selector_all("main details:not([open])", f"({opened})")
            page.wait_for_selector("main .fold-body:empty", state="detached")
        shown = page.inner_text("main")
        assert not {"\x1b", "\u202e", "\x07"} & set(shown), view
        assert page.locator("main script, main img, main iframe").count() == 0
        assert page.evaluate("window.stolen") is None
        if view == "/conversation":
            assert "<script>window.stolen=1</script>" in shown
            assert "U+001B" in shown and "U+202E" in shown


def test_a_live_page_follows_without_a_reload(chromium: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", finished=False)
    finished = write_run(tmp_path / "other")
    with serving(folder.parent) as server:
        page = chromium.new_page()
        go(page, server, f"/runs/{folder.name}/conversation")
        page.wait_for_selector("#live >> text=live")
        page.evaluate("window.same = true")
        page.locator("summary", has_text="1 avenue").click()
        whole = (finished / "events.jsonl").read_bytes()
        with (folder / "events.jsonl").open("ab") as record:
            record.write(whole[(folder / "events.jsonl").stat().st_size :])
        page.wait_for_selector(".item.comparison_finished")
        assert page.locator("details[open] > summary", has_text="1 avenue").count() == 1
        (folder / "run.json").write_bytes((finished / "run.json").read_bytes())
        page.wait_for_selector("#live", state="hidden")
        page.wait_for_selector("#announce >> text=The run has ended.", state="attached")
        assert page.evaluate("window.same")
        page.close()


ALL = ("/runs", *(f"/runs/{{first}}{view}" for view in VIEWS), "/runs/{hostile}/lineage")
SOME = {
    ("light", 1200): ("/runs/{first}", "/runs/{first}/ideas", "/runs/{hostile}/lineage"),
    ("dark", 390): ("/runs/{first}/conversation?generation=1&kind=message", "/runs/{first}/cost", "/runs"),
}


def test_a_live_overview_asks_only_for_candidates_that_changed(chromium: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", finished=False)
    record = folder / "events.jsonl"
    whole = record.read_bytes()
    lines = whole.splitlines(keepends=True)
    record.write_bytes(b"".join(lines[:-3]))
    with serving(folder.parent) as server:
        page = chromium.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.partition("/api/runs/")[2]))
        go(page, server, f"/runs/{folder.name}")
        page.wait_for_selector("#live >> text=live")
        assert "no faster kernel yet" in page.inner_text("h1")
        with record.open("ab") as file:
            file.write(b"".join(lines[-3:]))
        page.wait_for_selector(".chart a[href*='0002'] .error-bar", state="attached")
        page.close()
    since = [int(one.rpartition("/")[2]) for one in asked if "/changed/" in one]
    assert since[0] == 0 and since[-1] == len(lines) - 3
    assert not any(one.endswith("/candidates") for one in asked)


@pytest.mark.parametrize(
    ("theme", "width", "places"),
    [
        *((theme, width, places) for (theme, width), places in SOME.items()),
        # Widths decide what fits, themes what is legible: each of either once.
        *(
            pytest.param(theme, width, ALL, marks=pytest.mark.slow)
            for theme, width in (("light", 390), ("dark", 768), ("light", 1200))
        ),
    ],
)
def test_the_page_is_accessible_and_fits_its_width(
    chromium: Any, server: PageServer, runs: Runs, width: int, theme: Any, places: tuple[str, ...]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # axe is put into the page by the driver, which the page's own policy would not let in.
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, bypass_csp=True
    )
    page = context.new_page()
    for place in (one.format(first=runs.first, hostile=runs.hostile) for one in places):
        go(page, server, place)
        found = Axe().run(page)
        faults = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found.response["violations"]
        ]
        assert faults == [], place
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
    context.close()
