"""The page's server: reads only, this machine only unless a token is set.

Covered: other sites' pages (no CORS, strict content security policy, Fetch Metadata, SameSite cookie), DNS
rebinding (the Host header must name this server), files outside the folder of runs, methods other than GET
and HEAD. Not covered: another user of this machine where no token is set, and encryption: put a proxy that
speaks TLS in front where others share the network.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, final
from urllib.parse import parse_qs, unquote, urlsplit

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError
from kernel_scientist.sandbox.files import explain_os_error

from ..transcript.opened import RunShelf
from ..transcript.values import finite
from .api import Api, NotThere
from .assets import asset, asset_names, page_html

__all__ = ["PageServer", "is_loopback", "open_server"]

_COOKIE = "kernel-scientist-token"
_SHORTEST_TOKEN = 16
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    body: bytes
    type: str
    headers: tuple[tuple[str, str], ...] = ()


@final
class PageServer(ThreadingHTTPServer):
    """Serves the page of the runs in a folder; `serve_forever` and `shutdown` as of the standard library."""

    daemon_threads = True

    def __init__(self, host: str, port: int, api: Api, token: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.api = api
        self.token = token
        self._host = host
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Where the page is, with the token when there is one."""
        name = self._host
        if name in ("0.0.0.0", "::"):
            name = socket.gethostname()
        shown = f"[{name}]" if ":" in name else name
        token = f"?token={self.token}" if self.token else ""
        return f"http://{shown}:{self.port}/{token}"

    def is_for_us(self, host: str) -> bool:
        """Whether a Host header names this server: a name that DNS can be made to lie about does not."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.port or parts.username is not None or parts.path:
            return False
        if is_loopback(self._host):
            return name == "localhost" or is_loopback(name)
        return name in (self._host, socket.gethostname(), "localhost") or _is_address(name)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away in mid-answer is no error; anything else is told as the library does."""
        import sys

        if not isinstance(
            sys.exception() if hasattr(sys, "exception") else sys.exc_info()[1], ConnectionError
        ):
            super().handle_error(request, client_address)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def open_server(
    runs_dir: Path, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> PageServer:
    """A server that listens, not yet serving. Raises `UsageError` where that is impossible or unsafe."""
    if token is not None and (len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isalnum()):
        raise UsageError(
            f"The token must have at least {_SHORTEST_TOKEN} letters and digits; '--token new' makes one."
        )
    if token is None and not is_loopback(host):
        raise UsageError(
            f"Others could read the runs at {host}: give a token as well ('--token new' makes one), "
            "or leave out --host to stay on this machine."
        )
    try:
        return PageServer(host, port, Api(RunShelf(runs_dir)), token)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {host} port {port} ({error.strerror}); choose another --host or --port."
        ) from None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    @property
    def _page(self) -> PageServer:
        assert isinstance(self.server, PageServer)
        return self.server

    def version_string(self) -> str:
        return "kernel-scientist"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: their paths may hold the token."""

    def do_GET(self) -> None:
        self._send(self._answer(), with_body=True)

    def do_HEAD(self) -> None:
        self._send(self._answer(), with_body=False)

    def _answer(self) -> _Answer:
        try:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
        except ValueError:
            return _fault(HTTPStatus.BAD_REQUEST, "This is no address.")
        refusal = self._refusal(parts.path, query)
        if refusal is not None:
            return refusal
        path = unquote(parts.path)
        if path == "/":
            return _Answer(HTTPStatus.OK, page_html().encode(), "text/html; charset=utf-8")
        if path.startswith("/assets/") and path.removeprefix("/assets/") in asset_names():
            name = path.removeprefix("/assets/")
            kind = "text/css" if name.endswith(".css") else "text/javascript"
            return _Answer(HTTPStatus.OK, asset(name).encode(), f"{kind}; charset=utf-8")
        if parts.path.startswith("/api/"):
            # Split before unquoting: a quoted slash is a part of a name.
            steps = [unquote(step) for step in parts.path.removeprefix("/api/").split("/")]
            if any("/" in step for step in steps):
                return _fault(HTTPStatus.NOT_FOUND, "There is nothing at this path.")
            return self._ask("/".join(steps), query.get("q", [""])[0])
        return _fault(HTTPStatus.NOT_FOUND, "There is nothing at this path.")

    def _ask(self, path: str, words: str) -> _Answer:
        try:
            values = self._page.api.get(path, words)
        except NotThere as error:
            return _fault(HTTPStatus.NOT_FOUND, str(error))
        except UsageError as error:
            return _fault(HTTPStatus.BAD_REQUEST, str(error))
        except KernelScientistError as error:
            return _fault(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except OSError as error:
            return _fault(HTTPStatus.INTERNAL_SERVER_ERROR, str(explain_os_error(error, "read the run")))
        return _json(HTTPStatus.OK, values)

    def _refusal(self, path: str, query: dict[str, list[str]]) -> _Answer | None:
        """What is answered instead, where the request is not one of our page's."""
        if not self._page.is_for_us(self.headers.get("Host", "")):
            return _fault(HTTPStatus.MISDIRECTED_REQUEST, "This server has another name.")
        # Browsers say where a request comes from; another site's page may only link to ours.
        site = self.headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") and path != "/":
            return _fault(HTTPStatus.FORBIDDEN, "Other sites may not read this.")
        token = self._page.token
        if token is None:
            return None
        given = query.get("token", [""])[0]
        if given and path == "/" and _same(given, token):
            cookie = f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
            return _Answer(
                HTTPStatus.SEE_OTHER, b"", "text/plain", (("Location", "/"), ("Set-Cookie", cookie))
            )
        if _same(self._cookie(), token) or _same(self.headers.get("Authorization", ""), f"Bearer {token}"):
            return None
        return _fault(HTTPStatus.UNAUTHORIZED, "Open the address with the token that the command printed.")

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
        except CookieError:
            return ""
        return found.value if found else ""

    def _send(self, answer: _Answer, *, with_body: bool) -> None:
        self.send_response(answer.status)
        for name, value in (*_HEADERS.items(), *answer.headers):
            self.send_header(name, value)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _fault(status: HTTPStatus, sentence: str) -> _Answer:
    return _json(status, {"error": sentence})


def _json(status: HTTPStatus, values: object) -> _Answer:
    text = json.dumps(finite(values), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    return _Answer(status, text.encode("utf-8", "replace"), "application/json; charset=utf-8")
