"""Addresses and arXiv identifiers, fetched from a real server on this machine that behaves well or badly."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kernel_scientist.knowledge import KnowledgeBase, Limits
from kernel_scientist.knowledge.fetching import arxiv_id

PAGE = (
    b"<html><head><title>Banks</title></head><body><h1>Banks</h1><p>ds_read_b128 is wide.</p></body></html>"
)

# Path → content type, body.
PAGES: dict[str, tuple[str, bytes]] = {
    "/banks": ("text/html; charset=utf-8", PAGE),
    "/latin": ("text/html; charset=iso-8859-1", "<h1>Köln</h1><p>Text.</p>".encode("latin-1")),
    "/notes.md": ("text/plain", b"# Notes\n\n## Part\n\nText.\n"),
    "/sniffed": ("application/octet-stream", PAGE),
    "/picture.png": ("image/png", b"\x89PNG"),
    "/blob": ("application/octet-stream", b"\0\1\2"),
    "/empty": ("text/html", b""),
    "/large.txt": ("text/plain", b"word " * 10_000),
    "/pdf/2506.20807": ("text/plain", b"A paper\n\nText.\n"),
    "/pdf/2506.00001": ("text/plain", b"Another paper\n\nText.\n"),
    "/abs/2506.20807": (
        "text/html",
        b'<meta name="citation_title" content="GPU Kernel Scientist">'
        b'<meta name="citation_author" content="Andrews, Martin">'
        b'<meta name="citation_date" content="2025/06/25"><h1>[2506.20807]</h1><p>Abstract.</p>',
    ),
}


class Handler(BaseHTTPRequestHandler):
    """Serves `PAGES`, redirects, errors, and an answer that never ends."""

    def do_GET(self) -> None:
        if self.path.startswith("/redirect/"):
            left = int(self.path.rpartition("/")[2])
            self.send_response(302)
            self.send_header("Location", "/banks" if left == 0 else f"/redirect/{left - 1}")
            self.end_headers()
        elif self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
        elif self.path == "/gzip":
            self._send("text/html", gzip.compress(PAGE), encoding="gzip")
        elif self.path == "/bomb":
            self._send("text/plain", gzip.compress(b"a" * 1_000_000), encoding="gzip")
        elif self.path == "/slow":
            self._drip()
        elif self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"cut off")
        elif self.path in PAGES:
            self._send(*PAGES[self.path])
        else:
            self.send_error(404)

    def _send(self, kind: str, body: bytes, encoding: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        try:
            while not self.server.stopping.wait(0.05):  # type: ignore[attr-defined]
                self.wfile.write(b"a")
        except OSError:
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of the server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.stopping = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.stopping.set()  # type: ignore[attr-defined]
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def test_a_page_is_added_under_its_address_and_its_text_decides_whether_it_changed(
    base: KnowledgeBase, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{server}/banks"
    assert base.add(url, tags=["web"]).items[0].status == "added"
    document = base.documents()[0]
    assert (document.title, document.source, document.tags) == ("Banks", url, ("web",))
    assert base.search("ds_read_b128")[0].citation.source == url

    monkeypatch.setitem(
        PAGES, "/banks", ("text/html", PAGE.replace(b"<head>", b"<head><meta name=nonce content=7>"))
    )
    assert base.add(url).items[0].status == "unchanged"
    monkeypatch.setitem(PAGES, "/banks", ("text/html", PAGE.replace(b"wide", b"128 bits wide")))
    assert base.add(url).items[0].status == "replaced"
    assert "128 bits" in base.search("ds_read_b128")[0].text


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/latin", "Köln"),
        ("/notes.md", "Notes"),
        ("/sniffed", "Banks"),
        ("/gzip", "Banks"),
        ("/redirect/3", "Banks"),
    ],
)
def test_what_a_server_sends_is_read_by_what_it_is(
    base: KnowledgeBase, server: str, path: str, title: str
) -> None:
    item = base.add(server + path).items[0]

    assert (item.status, item.reason) == ("added", "")
    assert base.documents()[0].title == title


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("/missing", "unreachable: the server answers 404"),
        ("/redirect/9", "more than 5 redirects"),
        ("/elsewhere", "is not allowed"),
        ("/picture.png", "not a document: the server calls it image/png"),
        ("/blob", "neither PDF nor HTML"),
        ("/empty", "empty"),
        ("/large.txt", "too large (more than 20000 bytes)"),
        ("/bomb", "too large (more than 20000 bytes)"),
        ("/slow", "unreachable: nothing complete came within 1 s"),
        ("/short", "broke off"),
    ],
)
def test_a_bad_answer_fails_with_its_reason_and_stops_nothing(
    base: KnowledgeBase, server: str, path: str, complaint: str
) -> None:
    report = base.add(server + path, f"{server}/banks", limits=Limits(seconds=1, size=20_000))

    assert report.items[0].status == "failed" and complaint in report.items[0].reason
    assert report.items[1].status == "added"


def test_a_server_that_is_not_there_can_be_tried_again(base: KnowledgeBase, server: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/banks"

    item = base.add(nobody).items[0]

    assert item.status == "failed" and item.reason == "unreachable: connection refused"
    assert [failure.source for failure in base.failures()] == [nobody]


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("2506.20807", "2506.20807"),
        ("arXiv:2506.20807v2", "2506.20807v2"),
        ("arxiv:hep-th/9901001", "hep-th/9901001"),
        ("https://arxiv.org/abs/2506.20807", "2506.20807"),
        ("https://arxiv.org/pdf/2506.20807v1.pdf", "2506.20807v1"),
        ("https://example.org/abs/2506.20807", None),
        ("notes.2506", None),
    ],
)
def test_arxiv_identifiers_are_recognised(text: str, identifier: str | None) -> None:
    assert arxiv_id(text) == identifier


def test_an_arxiv_paper_is_fetched_and_cited_by_its_page(
    base: KnowledgeBase, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ARXIV_URL", server)

    report = base.add("arXiv:2506.20807", "https://arxiv.org/abs/2506.20807")

    assert [(i.source, i.status) for i in report.items] == [("https://arxiv.org/abs/2506.20807", "added")]
    document = base.documents()[0]
    assert (document.id, document.title) == ("2506-20807", "GPU Kernel Scientist")
    assert (document.authors, document.year) == (("Martin Andrews",), 2025)
    assert base.add("2506.20807").items[0].status == "unchanged"


def test_an_arxiv_paper_whose_page_fails_is_added_and_says_so(
    base: KnowledgeBase, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_ARXIV_URL", server)

    item = base.add("arXiv:2506.00001").items[0]

    assert item.status == "added" and "its page on arXiv failed: unreachable" in item.reason
    assert base.documents()[0].title == "Another paper"


def test_a_file_of_an_arxiv_papers_name_is_the_file(
    base: KnowledgeBase, write: Callable[[str, str | bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("2506.20807", "text\n")
    monkeypatch.chdir(path.parent)

    assert "not a document type" in base.add("2506.20807").items[0].reason
