"""Addresses of endpoints: redirects, names and passwords in them, and what a resumed run does without."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Limits, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import ModelsConfig, load_config
from kernel_scientist.agents.models.openai import open_openai
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.targets.fake import FakeTarget

from .conftest import Hold, Shelf, times
from .openai_server import KEY, Refuse, Say, serve
from .test_openai import config, good

PASSWORD = "pass word@9876"
ENCODED = "pass%20word%409876"
BASIC = base64.b64encode(f"lab:{PASSWORD}".encode()).decode()


@dataclass
class Front:
    """A server that sends everything elsewhere, and the one that it is sent to."""

    url: str
    taken: list[bytes] = field(default_factory=list)


@contextmanager
def redirecting(status: int, *, models: bool, location: str = "") -> Iterator[Front]:
    """A redirect to ``localhost`` on another port, of the list of models as well where `models`."""

    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            return None

        def answer(self, code: int, place: str = "", body: bytes = b"") -> None:
            self.send_response(code)
            if place:
                self.send_header("Location", place)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Elsewhere(Quiet):
        def do_GET(self) -> None:
            front.taken.append(
                bytes(self.headers) + self.rfile.read(int(self.headers["Content-Length"] or 0))
            )
            self.answer(200, body=b"{}")

        do_POST = do_GET

    class Redirect(Quiet):
        def do_GET(self) -> None:
            if models:
                self.do_POST()
            else:
                self.answer(200, body=b'{"data": []}')

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.answer(
                status, location or f"http://localhost:{elsewhere.server_address[1]}{self.path}?k={KEY}"
            )

    elsewhere, http = (ThreadingHTTPServer(("127.0.0.1", 0), one) for one in (Elsewhere, Redirect))
    front = Front(f"127.0.0.1:{http.server_address[1]}/v1")
    for server in (elsewhere, http):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield front
    finally:
        for server in (elsewhere, http):
            server.shutdown()
            server.server_close()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_and_takes_neither_key_nor_prompt_along(
    hold: Hold, tmp_path: Path, status: int, stream: bool
) -> None:
    with (
        redirecting(status, models=False) as front,
        pytest.raises(UsageError, match=rf"redirects to http://localhost:\d+ \({status}\)") as error,
    ):
        hold(config=config(f"http://lab:{ENCODED}@{front.url}", stream=stream))
    assert not front.taken
    _nowhere(tmp_path, str(error.value))


def test_a_redirect_of_the_list_of_models_is_found_out_before_the_run(hold: Hold, tmp_path: Path) -> None:
    with redirecting(307, models=True) as front, pytest.raises(UsageError, match="redirects to"):
        hold(config=config(f"http://{front.url}"))
    assert not front.taken and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (f"http://{KEY}@other.example/{KEY}?{KEY}", "redirects to http://other.example (307)"),
        (f"/login?key={KEY}", "redirects to another path (307)"),
        (f"gopher://{KEY}", "redirects to another path (307)"),
        (f"http://{KEY}.example/", "redirects to http://[key].example (307)"),
        ("http://[", "redirects to http://[ (307)"),
        ("\x1b[2J", "redirects to another path (307)"),
    ],
)
def test_where_a_redirect_leads_is_told_without_the_key(hold: Hold, location: str, said: str) -> None:
    with redirecting(307, models=False, location=location) as front, pytest.raises(UsageError) as error:
        hold(config=config(f"http://{front.url}"))
    assert said in str(error.value) and KEY not in str(error.value)


def _nowhere(folder: Path, *texts: str) -> None:
    """The password in none of its forms, and no key, in any file of the runs and any text."""
    written = [file.read_text() for file in (folder / "runs").rglob("*") if file.is_file()]
    for text in (*written, *texts):
        for secret in (KEY, PASSWORD, ENCODED, BASIC):
            assert secret not in text


def test_a_password_in_an_address_is_sent_and_written_nowhere(hold: Hold, tmp_path: Path) -> None:
    """Also where the endpoint gives it back, decoded or as it was sent."""
    told = [
        Refuse(500, f"no user with {PASSWORD} in 'Authorization: Basic {BASIC}'"),
        Refuse(502, f"upstream http://lab:{ENCODED}@10.0.0.1/v1 failed"),
    ]

    def leaky(body: dict[str, Any]) -> Any:
        if told:
            return told.pop()
        say = good(body)
        return Say(f"{PASSWORD} {ENCODED} {BASIC} {say.text}", say.calls) if say.text else say

    with serve(leaky, authorization=f"Basic {BASIC}") as server:
        url = server.url.replace("http://", f"http://lab:{ENCODED}@")
        held = hold(config=config(url, api_key=None), generations=1, experiments=1)
    assert held.result.status == "improved"
    failed = [call.error for call in held.of(ev.ModelCall) if call.error]
    assert len(failed) == 2 and all("[key]" in one for one in failed)
    _nowhere(tmp_path, str(server.requests), *(event.model_dump_json() for event in held.events))


def test_a_name_that_stands_for_a_password_is_one() -> None:
    opened = open_openai("m", ModelsConfig(base_url="http://tok-12345678@127.0.0.1:9/v1"), {})
    assert "tok-12345678" in opened.secrets
    assert "lab-user" not in open_openai("m", ModelsConfig(base_url="http://lab-user:p@h/v1"), {}).secrets


def test_an_address_with_a_password_is_refused_on_the_command_line() -> None:
    with pytest.raises(UsageError, match=r"read a command line.*OPENAI_BASE_URL") as error:
        load_config(environ={}, sets=[f"models.coder.base_url=http://lab:{ENCODED}@127.0.0.1/v1"])
    assert ENCODED not in str(error.value)


@pytest.mark.parametrize("rest", ["?key=abcdefgh", "#part", "?"])
def test_an_unusable_address_of_the_environment_is_told_without_its_password(rest: str) -> None:
    url = f"http://lab:{ENCODED}@[::1/v1{rest}"
    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as error:
        open_openai("m", ModelsConfig(), {"OPENAI_BASE_URL": url})
    assert ENCODED not in str(error.value) and "abcdefgh" not in str(error.value)


@pytest.mark.parametrize("url", ["http://h/v1?api-version=3", "http://h/v1#part"])
def test_an_address_with_a_query_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="must be an address"):
        load_config(environ={}, sets=[f"models.base_url={url}"])


def test_a_run_goes_on_with_today_s_keys_and_addresses(
    hold: Hold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run keeps neither: an agent's own key and an address with a password come from the file again."""
    other_key = "sk-other-9876543210"
    monkeypatch.chdir(tmp_path)
    with serve(good, authorization=f"Basic {BASIC}") as server, serve(good, key=other_key) as other:
        url = server.url.replace("http://", f"http://lab:{ENCODED}@")
        coder = {"base_url": other.url, "api_key": other_key}
        held = hold(
            config=config(url, api_key=None, coder=coder), generations=3, experiments=1,
            limits=Limits(max_evaluations=1),
        )  # fmt: skip
        assert held.result.exit_code == 4
        again = {"target": FakeTarget(times), "knowledge": Shelf(), "limits": Limits(max_evaluations=9)}
        with pytest.raises(UsageError, match=r"held a password.*set models\.base_url"):
            Session.resume(held.run, **again)
        Path("kernel-scientist.toml").write_text(
            f'[models]\nbase_url = "{url}"\n[models.coder]\napi_key = "{other_key}"\n'
        )
        result = Session.resume(held.run, **again).run()
    assert result.status == "improved" and result.run.info.status == "improved"
    _nowhere(tmp_path, *(file.read_text() for file in held.run.path.rglob("*.json*")))
    assert all(other_key not in file.read_text() for file in held.run.path.rglob("*") if file.is_file())
