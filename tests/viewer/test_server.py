"""What the page's server answers, and what it refuses: other hosts, sites, files and methods."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Run
from kernel_scientist.agents.transcript.opened import OpenedRun
from kernel_scientist.agents.transcript.redaction import Redaction
from kernel_scientist.agents.viewer.export import exported_page
from kernel_scientist.agents.viewer.server import PageServer, is_loopback, open_server
from kernel_scientist.sandbox.errors import UsageError

from ..cli.recorded import write_run
from .conftest import Runs, serving

TOKEN = "0123456789abcdef"


def ask(
    server: PageServer, path: str, *, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def values(server: PageServer, path: str) -> Any:
    status, _, body = ask(server, f"/api/{path}")
    assert status == 200, body
    return json.loads(body)


def test_every_answer_carries_the_strict_policy(server: PageServer) -> None:
    for path in ("/", "/assets/app.js", "/api/runs", "/api/nothing", "/nothing"):
        _, headers, _ = ask(server, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_the_document_names_nothing_elsewhere(server: PageServer) -> None:
    _, _, body = ask(server, "/")
    assert b"http:" not in body and b"https:" not in body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost:1", "",
        "a@localhost:{port}", "10.0.0.1:{port}",
    ],
)  # fmt: skip
def test_another_host_name_is_refused(server: PageServer, host: str) -> None:
    status, _, body = ask(server, "/api/runs", Host=host.format(port=server.port))
    assert status == 421 and b"runs" not in body


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_the_names_of_this_machine_are_served(server: PageServer, host: str) -> None:
    assert ask(server, "/api/runs", Host=host.format(port=server.port))[0] == 200


def test_pages_of_other_sites_may_only_link_here(server: PageServer) -> None:
    assert ask(server, "/api/runs", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/assets/app.js", Sec_Fetch_Site="same-site")[0] == 403
    assert ask(server, "/api/runs", Sec_Fetch_Site="same-origin")[0] == 200
    assert "Access-Control-Allow-Origin" not in ask(server, "/api/runs", Origin="http://evil.example")[1]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_answered(server: PageServer, method: str) -> None:
    assert ask(server, "/api/runs", method=method)[0] == 501


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/assets/../server.py", "/assets/%2e%2e/server.py", "/assets//etc/passwd",
        "/api/../runs", "/api/runs/..", "/api/runs/%2e%2e", "/api/runs/..%2f..%2fetc", "/api/runs/%00",
        "/api/runs/.", "/api/runs//etc", "/api/runs/{run}/candidates/..%2f0000", "/api/runs/{run}/events/0",
        "/api/runs/{run}/events/-1", "/api/runs/{run}/items/x", "/api/runs/{run}/run.json",
    ],
)  # fmt: skip
def test_no_path_leads_out(server: PageServer, runs: Runs, path: str) -> None:
    status, headers, body = ask(server, path.format(run=runs.first))
    assert status == 404
    assert headers["Content-Type"].startswith("application/json") and b"root:" not in body


def test_links_in_the_folder_of_runs_are_not_followed(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside")
    secret = tmp_path / "secret.txt"
    secret.write_text("very secret")
    folder = write_run(tmp_path / "runs")
    (folder.parent / "linked").symlink_to(outside)
    copy = folder.parent / "20250101-copy"
    copy.mkdir()
    (copy / "run.json").write_bytes((folder / "run.json").read_bytes())
    (copy / "events.jsonl").symlink_to(outside / "events.jsonl")
    kernel = folder / "candidates" / "0001" / "kernel.hip"
    kernel.unlink()
    kernel.symlink_to(secret)
    (folder / "candidates" / "0001" / "compile.log").symlink_to(secret)
    record = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(
        record.replace('"candidates/0002/kernel.hip"', '"candidates/0000/../../../../secret.txt"')
    )
    with serving(folder.parent) as server:
        assert [one["id"] for one in values(server, "runs")["runs"]] == [folder.name]
        for name in ("linked", copy.name):
            assert ask(server, f"/api/runs/{name}")[0] == 404
        found = values(server, f"runs/{folder.name}/candidates/0001")
        assert found["source"] == "" and "not shown" in found["source_fault"]
        assert "very secret" not in json.dumps(found)
        status, _, body = ask(server, f"/api/runs/{folder.name}/candidates/0002")
        assert status == 404 and b"very secret" not in body, "a forged path is no event"
        assert values(server, "search?q=very%20secret")["hits"] == []


def test_a_pipe_in_place_of_a_kernel_does_not_hold_the_server_up(tmp_path: Path) -> None:
    import os

    folder = write_run(tmp_path / "runs")
    kernel = folder / "candidates" / "0001" / "kernel.hip"
    kernel.unlink()
    os.mkfifo(kernel)
    with serving(folder.parent) as server:
        found = values(server, f"runs/{folder.name}/candidates/0001")
        assert "not a regular file" in found["source_fault"]


def test_with_a_token_nothing_is_answered_without_it(runs: Runs) -> None:
    with serving(runs.folder, token=TOKEN) as server:
        assert ask(server, "/")[0] == 401
        assert ask(server, "/api/runs")[0] == 401
        assert ask(server, "/api/runs?token=" + TOKEN)[0] == 401, (
            "an address with the token is for the page only"
        )
        assert ask(server, "/?token=" + TOKEN[::-1])[0] == 401
        status, headers, _ = ask(server, "/?token=" + TOKEN)
        assert (status, headers["Location"]) == (303, "/")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert ask(server, "/api/runs", Cookie=cookie.partition(";")[0])[0] == 200
        assert ask(server, "/api/runs", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert ask(server, "/api/runs", Authorization="Bearer é")[0] == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_let_in_only_with_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(UsageError, match="--token"):
        open_server(tmp_path, host=host)


@pytest.mark.parametrize("token", ["short", "with space 123456", "0123456789abcdé0"])
def test_a_weak_token_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(UsageError, match="letters and digits"):
        open_server(tmp_path, token=token)


def test_a_port_that_is_taken_is_said(server: PageServer, runs: Runs) -> None:
    with pytest.raises(UsageError, match="--port"):
        open_server(runs.folder, port=server.port)


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.org", "10.0.0.1")))


def test_what_is_appended_is_seen_and_a_half_line_waits(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs", finished=False)
    whole = (write_run(tmp_path / "other") / "events.jsonl").read_bytes()
    path = f"runs/{folder.name}"
    with serving(folder.parent) as server:
        first = values(server, f"{path}/state")
        assert first["live"]
        rest = whole[(folder / "events.jsonl").stat().st_size :]
        with (folder / "events.jsonl").open("ab", buffering=0) as record:
            record.write(rest[:40])
            assert values(server, f"{path}/state")["last_seq"] == first["last_seq"]
            assert values(server, path)["faults"] == []
            record.write(rest[40:])
        assert values(server, f"{path}/state")["last_seq"] == first["last_seq"] + 2
        heads = values(server, f"{path}/heads/{first['last_seq']}")
        assert heads["kind"] == ["comparison_finished", "run_finished"]


def test_damage_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(
        b"".join([*lines[:3], b"\xff\x00 no event\n", *lines[3:], b'{"kind'])
    )
    with serving(folder.parent) as server:
        about = values(server, f"runs/{folder.name}")
        assert about["events"] == len(lines)
        assert "2 damaged lines" in about["faults"][0]
        (folder / "run.json").write_text("{")
        about = values(server, f"runs/{folder.name}")
        assert about["run"] is None and "damaged" in about["faults"][0]
        assert len(values(server, f"runs/{folder.name}/items/0")["items"]) == len(lines)


def test_an_empty_search_is_a_fault_of_the_request(server: PageServer) -> None:
    assert ask(server, "/api/search?q=%20")[0] == 400


@pytest.mark.parametrize("address", ["http://[::1/", "http://[/", "/", "/api/runs/" + "a" * 5000])
@pytest.mark.parametrize("host", ["[::1", "[zz]", "127.0.0.1:{port}", "a℀b:{port}"])
def test_an_address_that_is_none_gets_an_answer_and_no_traceback(
    server: PageServer, address: str, host: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        named = host.format(port=server.port)
        connection.sendall(f"GET {address} HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n".encode())
        status = connection.makefile("rb").readline().split()[1]
    assert status in (b"200", b"400", b"404", b"421")
    assert capfd.readouterr().err == ""


def test_a_number_that_json_does_not_know_is_none_in_the_page_and_in_its_export(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    file = folder / "run.json"
    totals = {"cost_usd": "nan", "seconds": "inf"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "totals": totals}))
    with serving(folder.parent) as server:
        (row,) = values(server, "runs")["runs"]
    assert row["totals"]["cost_usd"] in (None, "NaN")
    page = exported_page(OpenedRun.of(Run(folder)), Redaction(frozenset()))
    embedded = page.partition('id="embedded">')[2].partition("<")[0]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(embedded, parse_constant=refuse)["run"] == folder.name


def test_before_the_record_is_read_the_result_is_there(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    whole_path, path = f"runs/{folder.name}", f"runs/{folder.name}/brief"
    with (folder / "events.jsonl").open("ab") as record:
        record.write(b" " * 9_000_000)
    with serving(folder.parent) as server:
        brief = values(server, path)
        whole = values(server, whole_path)
        assert not brief["ready"] and values(server, path)["ready"]
        for name in ("id", "run", "path", "live", "best"):
            assert brief["about"][name] == whole[name], name
        (folder / "run.json").write_text("{")
        damaged = values(server, path)["about"]
        assert damaged["run"] is None and "is damaged" in damaged["faults"][0]
        assert ask(server, "/api/runs/nothing/brief")[0] == 404


def test_only_candidates_that_changed_are_told_again(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    path = f"runs/{folder.name}"
    with serving(folder.parent) as server:
        every = values(server, f"{path}/candidates")
        assert values(server, f"{path}/changed/0") == every
        judged = next(one for one in every["candidates"] if one["id"] == "0001")["judged_seq"]
        later = values(server, f"{path}/changed/{judged}")
        assert [one["id"] for one in later["candidates"]] == ["0002"]
        assert values(server, f"{path}/changed/{every['last_seq']}")["candidates"] == []


def test_an_event_that_is_damaged_after_it_was_indexed_is_passed_over_and_said(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    record = folder / "events.jsonl"
    with serving(folder.parent) as server:
        before = values(server, f"runs/{folder.name}/items/0")["items"]
        place = record.read_bytes().index(b'"lds-banks#2"')
        with record.open("r+b") as file:
            file.seek(place)
            file.write(b"\x00\x00")
        after = values(server, f"runs/{folder.name}/items/0")["items"]
        assert {one["seq"] for one in before} - {one["seq"] for one in after} == {8}
        assert ask(server, f"/api/runs/{folder.name}/events/8")[0] == 404
        assert "1 damaged line" in values(server, f"runs/{folder.name}")["faults"][0]
        assert values(server, "search?q=LDS%20notes")["hits"] == []
