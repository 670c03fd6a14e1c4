"""``kernel-scientist transcript view``: the page of a run, for as long as the command runs."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from urllib.parse import quote as url_quote

import click

from .output import echo, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option

__all__ = ["view"]

_NEW = "new"


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port.  [default: a free one]"
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
    help="Where to listen; other than on this machine only with --token.",
)  # fmt: skip
@click.option(
    "--token", metavar="TOKEN", help="Ask for this token (16 letters and digits or more); 'new' makes one."
)
@click.option(
    "--open/--no-open", "wanted", default=None,
    help="Open the page in the browser.  [default: on a desktop's terminal]",
)  # fmt: skip
@runs_dir_option
@json_option
def view(
    run: str,
    port: int,
    host: str,
    token: str | None,
    wanted: bool | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Show RUN, and the other runs beside it, as a page in the browser; live while it goes on.

    The address is printed on stdout. Nothing is loaded from the network. Ctrl-C ends it.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.viewer.server import open_server

    opened = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    folder = opened.path.resolve()
    server = open_server(folder.parent, host=host, port=port, token=_token(token))
    with server:
        address = f"{server.url}#/runs/{url_quote(folder.name, safe='')}"
        if as_json:
            print_json({"url": address, "run": folder.name, "host": host, "port": server.port})
        else:
            echo(address)
        sys.stdout.flush()
        # By the time that a browser asks, most of a long record has been read.
        threading.Thread(target=server.api.prepare, args=(folder.name,), daemon=True).start()
        remark("Open this address in a browser on this machine; Ctrl-C ends the page.")
        if wanted if wanted is not None else _on_a_desktop():
            _open(address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            remark()
    return 0


def _token(given: str | None) -> str | None:
    if given != _NEW:
        return given
    import secrets

    return secrets.token_hex(16)


def _on_a_desktop() -> bool:
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) and sys.stdout.isatty() and sys.stderr.isatty()


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        remark("No browser could be opened here; open the address yourself.")
