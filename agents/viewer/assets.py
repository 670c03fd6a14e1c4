"""The page's own files: one document, one style sheet, scripts in the order they are loaded in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["SCRIPTS", "STYLE", "asset", "asset_names", "page_html"]

STYLE = "style.css"
SCRIPTS = (
    "dom.js",
    "format.js",
    "data.js",
    "diff.js",
    "charts.js",
    "parts.js",
    "overview.js",
    "conversation.js",
    "items.js",
    "lineage.js",
    "candidate.js",
    "ideas.js",
    "cost.js",
    "compare.js",
    "search.js",
    "app.js",
)


def asset_names() -> tuple[str, ...]:
    """The files that the document loads."""
    return (STYLE, *SCRIPTS)


@cache
def asset(name: str) -> str:
    """The text of one of the page's files."""
    return (files("kernel_scientist.agents.viewer") / "page" / name).read_text(encoding="utf-8")


def page_html() -> str:
    """The document as a server sends it."""
    head = f'<link rel="stylesheet" href="/assets/{STYLE}">'
    scripts = "\n".join(f'<script defer src="/assets/{name}"></script>' for name in SCRIPTS)
    return asset("page.html").replace("<!-- style -->", head).replace("<!-- scripts -->", scripts)
