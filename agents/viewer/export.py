"""The page of a run as one file that opens from disk: the same page, with all answers it may ask for."""

from __future__ import annotations

import base64
import hashlib
import json

from ..transcript.opened import OpenedRun
from ..transcript.redaction import Redaction
from ..transcript.values import Json, finite
from .api import PAGE_SIZE, RunApi
from .assets import SCRIPTS, STYLE, asset

__all__ = ["exported_page"]


def exported_page(opened: OpenedRun, redaction: Redaction) -> str:
    """The document. It may run its own script and nothing else, and may ask nobody for anything."""
    style = asset(STYLE)
    script = "\n".join(asset(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    values = {
        "run": opened.run.id,
        "left_out": sorted(redaction.parts),
        "answers": {path: redaction.apply(answer) for path, answer in _answers(opened).items()},
    }
    # "<" is all that could end the element that the values stand in.
    data = json.dumps(finite(values), ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    body = f'<script type="application/json" id="embedded">{data}</script>\n<script>{script}</script>'
    return asset("page.html").replace("<!-- style -->", head).replace("<!-- scripts -->", body)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _answers(opened: OpenedRun) -> dict[str, Json]:
    """Everything that the page may ask of this run, by path."""
    api, base = RunApi(opened), f"runs/{opened.run.id}"
    entries = opened.record.entries
    pages = range(-(-len(entries) // PAGE_SIZE))
    wanted = [
        [], ["candidates"], ["learnt"], ["cost"], ["heads", "0"],
        *(["items", str(page)] for page in pages),
        *(["candidates", name] for name in opened.summary.candidates),
    ]  # fmt: skip
    answers = {"/".join([base, *steps]): api.get(steps) for steps in wanted}
    bulky = [
        item["seq"] for page in pages for item in answers[f"{base}/items/{page}"]["items"] if item["more"]
    ]
    for seq in bulky:
        answers[f"{base}/events/{seq}"] = api.get(["events", str(seq)])
    from ..transcript.runs import run_row

    return {"runs": {"runs": [run_row(opened.run)]}, **answers}
