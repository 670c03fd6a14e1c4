"""Documents from the web, bounded in time, size and redirects.

Covered: a server that is slow, endless, redirects in circles, or sends what is no document. Not covered: a
page whose text is made by scripts in the browser, and pages behind a login.
"""

from __future__ import annotations

import http.client
import os
import re
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Literal, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from .loaders import LoadError, is_document

__all__ = ["Fetched", "Limits", "arxiv_address", "arxiv_id", "arxiv_page", "fetch", "is_address"]

_ARXIV_VARIABLE = "KERNEL_SCIENTIST_ARXIV_URL"
_ARXIV = "https://arxiv.org"
# Identifiers since April 2007, and those of before with their archive.
_ARXIV_ID = re.compile(r"(?:\d{4}\.\d{4,5}|[a-z][a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?")
_ARXIV_ADDRESS = re.compile(r"https?://(?:www\.)?arxiv\.org/(?:abs|pdf)/([^?#]+?)(?:\.pdf)?/?(?:[?#].*)?")
_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "application/x-pdf": ".pdf",
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/x-rst": ".rst",
    "text/prs.fallenstein.rst": ".rst",
    "application/x-ipynb+json": ".ipynb",
}
# Types that servers give to nearly anything: there the address's own suffix says more.
_VAGUE = ("application/octet-stream", "binary/octet-stream", "application/json", "")
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may take."""

    seconds: float = 60.0
    size: int = 100 << 20
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address held; `url` is where it really was.

    The suffix of `name` says which loader reads it.
    """

    raw: bytes
    name: str
    url: str


def is_address(text: str) -> bool:
    """Whether `text` is an address with a scheme, ours or not."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def arxiv_id(text: str) -> str | None:
    """The arXiv identifier that `text` is, as ``arXiv:2506.20807v2``, bare, or as an address there."""
    page = _ARXIV_ADDRESS.fullmatch(text)
    bare = page[1] if page else re.sub(r"^arxiv:\s*", "", text.strip(), flags=re.IGNORECASE)
    return bare if _ARXIV_ID.fullmatch(bare) else None


def arxiv_page(identifier: str) -> str:
    """Where people read about the paper: its identity in the knowledge base."""
    return f"{_ARXIV}/abs/{identifier}"


def arxiv_address(identifier: str, kind: Literal["abs", "pdf"]) -> str:
    """Where its page or its PDF is fetched from; ``KERNEL_SCIENTIST_ARXIV_URL`` may name a mirror."""
    return f"{(os.environ.get(_ARXIV_VARIABLE) or _ARXIV).rstrip('/')}/{kind}/{identifier}"


def fetch(url: str, limits: Limits | None = None) -> Fetched:
    """The document at an http or https address. Raises `LoadError`, whose message says why there is none."""
    if urlsplit(url).scheme.lower() not in ("http", "https"):
        raise LoadError("only http and https addresses are fetched; download it and add the file")
    return _within(_Download(url, limits or Limits()))


@dataclass(slots=True)
class _Download:
    """One fetch; `abandoned` is set when nobody waits for it any more."""

    url: str
    limits: Limits
    abandoned: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> Fetched:
        opener = urllib.request.build_opener(_Redirects(self.limits.redirects))
        headers = {"User-Agent": "kernel-scientist", "Accept-Encoding": "identity"}
        request = urllib.request.Request(self.url, headers=headers)
        with opener.open(request, timeout=self.limits.seconds) as answer:
            kind = answer.headers.get_content_type() if "Content-Type" in answer.headers else ""
            suffix = _suffix(kind, answer.url)
            promised = answer.headers.get("Content-Length", "")
            if promised.isdigit() and int(promised) > self.limits.size:
                raise _too_large(self.limits)
            raw = self._body(answer, answer.headers.get("Content-Encoding", "identity").lower())
            if promised.isdigit() and answer.length:
                raise LoadError(f"the connection broke off {answer.length} bytes before the end; try again")
        if suffix is None:
            suffix = _sniffed(raw, kind)
        charset = answer.headers.get_content_charset()
        return Fetched(_as_utf8(raw, suffix, charset), _name(answer.url, suffix), answer.url)

    def _body(self, answer: http.client.HTTPResponse, encoding: str) -> bytes:
        if encoding not in ("identity", "gzip", "x-gzip", "deflate", ""):
            raise LoadError(f"the server sent it compressed by '{encoding[:20]}', which was not asked for")
        unpack = None if encoding in ("identity", "") else zlib.decompressobj(zlib.MAX_WBITS | 32)
        parts: list[bytes] = []
        size = 0
        while block := answer.read1(_CHUNK):
            if self.abandoned.is_set():
                raise LoadError("given up")
            part = unpack.decompress(block, self.limits.size - size + 1) if unpack else block
            size += len(part)
            if size > self.limits.size:
                raise _too_large(self.limits)
            parts.append(part)
        return b"".join(parts)


def _within(download: _Download) -> Fetched:
    """Run `download` for at most its time: a socket's own limit begins anew with every byte."""
    results: list[Fetched | Exception] = []
    worker = threading.Thread(target=lambda: results.append(_outcome(download)), daemon=True)
    worker.start()
    worker.join(download.limits.seconds)
    if not results:
        download.abandoned.set()
        raise LoadError(f"unreachable: nothing complete came within {download.limits.seconds:g} s")
    outcome = results[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


_Result = TypeVar("_Result")


def _outcome(download: Callable[[], _Result]) -> _Result | Exception:
    try:
        return download()
    except LoadError as error:
        return error
    except urllib.error.HTTPError as error:
        error.close()
        return LoadError(f"unreachable: the server answers {error.code} {error.reason}")
    except urllib.error.URLError as error:
        return LoadError(f"unreachable: {_plain(error.reason)}")
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        return LoadError(f"unreachable: {_plain(error)}")


def _plain(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "the server does not answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return str(reason)[:200] or type(reason).__name__


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, to http and https only."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._most = most

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if self._left == 0:
            fp.close()
            raise LoadError(f"unreachable: more than {self._most} redirects")
        self._left -= 1
        target = urljoin(req.full_url, newurl)
        if urlsplit(target).scheme.lower() not in ("http", "https"):
            fp.close()
            raise LoadError("unreachable: it redirects to an address that is neither http nor https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _too_large(limits: Limits) -> LoadError:
    return LoadError(f"too large (more than {_size(limits.size)}); download a part of it and add the file")


def _size(number: int) -> str:
    return f"{number >> 20} MiB" if number >= 1 << 20 else f"{number} bytes"


def _suffix(kind: str, url: str) -> str | None:
    """The suffix for a content type; ``None`` when only the content can tell."""
    own = PurePosixPath(unquote(urlsplit(url).path)).suffix.lower()
    if kind in _SUFFIXES:
        return _SUFFIXES[kind]
    if kind.startswith("text/"):
        return own if own not in ("", ".pdf", ".html", ".htm") and is_document(own) else ".txt"
    if kind in _VAGUE:
        return own if own and is_document(own) else None
    raise LoadError(f"not a document: the server calls it {kind[:60]}")


def _sniffed(raw: bytes, kind: str) -> str:
    start = raw[:1024].lstrip().lower()
    if start.startswith(b"%pdf-"):
        return ".pdf"
    if start.startswith((b"<!doctype html", b"<html")):
        return ".html"
    raise LoadError(
        f"not a document: the server calls it {kind or 'nothing'}, and it is neither PDF nor HTML"
    )


def _as_utf8(raw: bytes, suffix: str, charset: str | None) -> bytes:
    if charset is None or charset.lower() in ("utf-8", "utf8", "us-ascii") or suffix == ".pdf":
        return raw
    try:
        return raw.decode(charset).encode()
    except (LookupError, UnicodeDecodeError):
        return raw  # the loader finds out by itself


def _name(url: str, suffix: str) -> str:
    parts = urlsplit(url)
    stem = PurePosixPath(unquote(parts.path)).name or parts.hostname or "page"
    return stem if stem.lower().endswith(suffix) else f"{stem}{suffix}"
