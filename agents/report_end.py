"""The last parts of a run's report: what it cost, the literature it cites, how to do it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kernel_scientist.tools.problem import RECORDED

from .config import Config
from .markdown import code, count, plain, table
from .problem_name import problem_name
from .report_facts import Facts, ref
from .run import BASELINE_ID, RunInfo

__all__ = ["cost", "literature", "reproduce"]


def cost(facts: Facts) -> Iterator[str]:
    totals = facts.info.totals
    cost = "not known" if totals.cost_usd is None else f"${totals.cost_usd:.4f}"
    about = "about " if facts.estimated else ""
    yield "## Cost"
    yield ""
    yield (
        f"{count(totals.evaluations, 'evaluation')} of {count(totals.candidates, 'candidate')}, "
        f"{totals.accepted} accepted; {count(totals.model_calls, 'model call')} with "
        f"{about}{totals.prompt_tokens} tokens in and "
        f"{about}{totals.completion_tokens} out, {cost}; {totals.seconds:.0f} s{ref(facts.finished)}."
    )
    yield ""
    rows = [
        (
            plain(agent),
            str(use.calls),
            str(use.failed),
            f"{about}{use.tokens}",
            f"#{use.first} to #{use.last}",
        )
        for agent, use in facts.usage.items()
    ]
    if rows:
        yield from table(("agent", "model calls", "failed", "tokens", "events"), rows)


def literature(facts: Facts) -> Iterator[str]:
    cited = facts.cited
    if not cited:
        return
    yield "## Literature cited"
    yield ""
    for name, (passage, seq) in cited.items():
        page = f", p. {passage.page}" if passage.page is not None else ""
        section = f", {plain(passage.section, 120)}" if passage.section else ""
        title, source = plain(passage.title, 120), plain(passage.source, 200)
        yield f"- {code(name)}: {title}{section}{page}; {source}{ref(seq)}"
    yield ""


def reproduce(facts: Facts) -> Iterator[str]:
    info = facts.info
    yield "## How to reproduce it"
    yield ""
    yield "In the run's folder:"
    yield ""
    yield from (*(f"    {line}" for line in _commands(facts)), "")
    yield (
        "The search is repeated only by a model that answers the same; the best kernel can be measured again "
        "wherever the target is."
    )
    yield ""
    rows = [(plain(name), code(value)) for name, value in info.versions.items()]
    rows += [
        ("problem, SHA-256", code(info.problem_key)),
        ("starting kernel, SHA-256", code(info.kernel_key)),
    ]
    best = facts.candidate(info.best.candidate_id) if info.best is not None else None
    if best is not None:
        rows.append((f"best kernel {best.id}, SHA-256", code(best.key)))
    rows += [(f"prompt of {plain(name)}, hash", code(value)) for name, value in info.prompts.items()]
    rows.append(("seed", "none was set" if info.seed is None else str(info.seed)))
    yield from table(("what", "which"), rows)
    yield "The configuration is in [run.json](run.json), every event in [events.jsonl](events.jsonl)."


def _commands(facts: Facts) -> list[str]:
    """Commands for a shell, which every word from outside is quoted for."""
    info = facts.info
    recorded = info.target.startswith(RECORDED)
    problem = problem_name(info)
    run = "kernel-scientist run"
    kernel = f"candidates/{BASELINE_ID}/kernel.hip" if facts.candidates else info.kernel
    if not recorded:
        run += f" {_word(problem)} --kernel {_word(kernel)}"
    lines = [f"{run} --target {_word(info.target)} --runs-dir .. {' '.join(_options(info))}"]
    if info.best is not None:
        of = "" if recorded else f" --problem {_word(problem)}"
        target = f" --target {_word(info.target)} --tier confirm"
        lines.append(f"kernel-scientist bench {_word(info.best.path)}{of}{target}")
    lines.append(f"kernel-scientist transcript show {_word(info.id)} --runs-dir ..")
    return lines


def _options(info: RunInfo) -> Iterator[str]:
    """What shaped the session: the usual flags always, other keys where they are not the default."""
    for name in ("model", "generations", "experiments"):
        value = info.generations if name == "generations" else info.config.get(name)
        if value is not None:
            yield f"--{name} {_word(str(value))}"
    if info.policy != "paper":
        yield f"--policy {_word(info.policy)}"
    if info.seed is not None:
        yield f"--seed {info.seed}"
    for key, value in _changed(info.config, Config().model_dump(mode="json")):
        yield f"--set {_word(f'{key}={_literal(value)}')}"


_NOT_SET = frozenset({"target", "model", "generations", "experiments", "policy", "seed", "runs_dir"})


def _changed(
    config: Mapping[str, Any], usual: Mapping[str, Any], table: str = ""
) -> Iterator[tuple[str, Any]]:
    """The keys of a configuration whose values are others than usual. Prices are one value."""
    for name, value in config.items():
        key = f"{table}{name}"
        if key in _NOT_SET or value is None or value == usual.get(name):
            continue
        if isinstance(value, dict) and key != "models.prices":
            yield from _changed(cast("dict[str, Any]", value), usual.get(name) or {}, f"{key}.")
        else:
            yield key, value


def _literal(value: Any) -> str:
    """`value` as TOML writes it in one line."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        pairs = (f"{json.dumps(key)} = {_literal(one)}" for key, one in table.items() if one is not None)
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


def _word(text: str) -> str:
    """A word for a shell, on one line."""
    return shlex.quote("".join(one if one.isprintable() else "?" for one in text))
