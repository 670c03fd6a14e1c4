"""``kernel-scientist transcript export``: a run in other forms, whole or without what must not be shared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from .output import remark
from .places import resolve_runs_dir, runs_dir_option
from .text import size_text

if TYPE_CHECKING:
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.redaction import Part, Redaction

__all__ = ["export"]

_FORMS = {"html": (".html", ".htm"), "md": (".md",), "json": (".json",), "csv": (".csv",)}
_PARTS = ("code", "literature", "paths")


@click.command()
@click.argument("run", metavar="[RUN]", default="last")
@click.option("--html", is_flag=True, help="One page that opens from disk and needs nothing else.")
@click.option("--md", is_flag=True, help="Markdown for a pull request.")
@click.option("--json", is_flag=True, help="The run, its candidates and every event.")
@click.option("--csv", is_flag=True, help="The candidates, a row each.")
@click.option(
    "--otlp", "collector", metavar="URL", help="Send it as spans to this OTLP collector (extra `otel`)."
)
@click.option("--otlp-content", is_flag=True, help="Let the spans hold what was said, asked and answered.")
@click.option(
    "--without", metavar="PARTS", default="",
    help="Leave these out: code, literature (its text), paths; separated by commas.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write to FILE instead of stdout; its ending says the form.",
)  # fmt: skip
@runs_dir_option
def export(
    run: str, collector: str | None, otlp_content: bool, without: str, output: Path | None,
    runs_dir: Path | None, **forms: bool,
) -> int:  # fmt: skip
    """Write RUN as a page, Markdown, JSON or CSV, to stdout or FILE, or send it as spans.

    `--without code,literature` leaves out sources, diffs, logs, the text of passages, and what models were
    sent and answered, for that quotes both; what agents said in their own words stays. Read it before you
    share it.
    """
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.transcript.opened import OpenedRun
    from kernel_scientist.agents.transcript.redaction import Redaction
    from kernel_scientist.sandbox.files import atomic_write, explained

    form = _one_of([name for name in _FORMS if forms[name]])
    if collector is not None:
        if form or output or without:
            raise click.UsageError("--otlp sends spans and writes nothing; give it without another form")
        return _send(run, runs_dir, collector, otlp_content)
    if otlp_content:
        raise click.UsageError("--otlp-content says what spans hold; add --otlp URL")
    chosen = form or _form_of(output)
    redaction = Redaction(_parts(without))
    opened = OpenedRun.of(Run.open(run, runs_dir=resolve_runs_dir(runs_dir)))
    text = _written(opened, chosen, redaction)
    if output is None:
        sys.stdout.write(text)
    else:
        data = text.encode("utf-8", "replace")
        with explained("write the export", output):
            atomic_write(output, data)
        remark(f"Wrote {output} ({size_text(len(data))}).")
    for fault in opened.faults():
        remark(fault)
    return 0


def _send(run: str, runs_dir: Path | None, url: str, content: bool) -> int:
    from kernel_scientist.agents import Run
    from kernel_scientist.agents.telemetry.otlp import Collector, send_run

    found = Run.open(run, runs_dir=resolve_runs_dir(runs_dir))
    collector = Collector(url)
    sent = send_run(found.events(), collector, content=content)
    remark(f"Sent {sent} spans of run {found.id} to {collector.url}.")
    for fault in found.record_faults():
        remark(fault)
    return 0


def _one_of(forms: list[str]) -> str | None:
    if len(forms) > 1:
        raise click.UsageError(f"--{' and --'.join(forms)} are different forms; give one")
    return forms[0] if forms else None


def _form_of(output: Path | None) -> str:
    if output is None:
        raise click.UsageError("Say the form: --html, --md, --json or --csv, or --output with such an ending")
    for form, endings in _FORMS.items():
        if output.suffix.lower() in endings:
            return form
    raise click.UsageError(f"The ending of {output} says no form; add --html, --md, --json or --csv")


def _parts(without: str) -> frozenset[Part]:
    given = [part.strip() for part in without.split(",") if part.strip()]
    for part in given:
        if part not in _PARTS:
            raise click.UsageError(f"'{part}' cannot be left out; there are {', '.join(_PARTS)}")
    return frozenset(cast("list[Part]", given))


def _written(opened: OpenedRun, form: str, redaction: Redaction) -> str:
    from kernel_scientist.agents.transcript import exports
    from kernel_scientist.agents.viewer.export import exported_page

    match form:
        case "html":
            return exported_page(opened, redaction)
        case "md":
            return exports.run_markdown(opened, redaction)
        case "csv":
            return exports.candidates_csv(opened, redaction)
        case _:
            return exports.run_json(opened, redaction)
