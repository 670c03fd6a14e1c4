"""What a run found out, as a document of the knowledge base: experience, beside what people publish.

Figures and verdicts are the judge's. What was tried is in that run's model's words: data, as
literature is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError
from kernel_scientist.sandbox.files import atomic_write, explained

from .messages import Experiment, Finding
from .replies import clean
from .run import Candidate, Run, RunInfo

if TYPE_CHECKING:
    from kernel_scientist.knowledge import AddItem, KnowledgeBase

__all__ = ["experience_of", "learn", "learn_or_say"]

_HEADING = 160
_TEXT = 700


def learn(run: Run, base: KnowledgeBase) -> AddItem:
    """Store the findings of `run` in `base`; learning a run again replaces what was learnt of it before.

    Raises `UsageError` when the run has no findings.
    """
    folder = base.path / "experience"
    file = folder / f"{run.id}.md"
    text = experience_of(run)
    with explained("keep the experience", folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(file, text)
    return base.add(file).items[0]


def learn_or_say(run: Run, base: KnowledgeBase) -> str:
    """`learn`, and what came of it as a sentence: a failure costs a session nothing."""
    try:
        item = learn(run, base)
    except (KernelScientistError, OSError) as error:
        return f"Nothing was learnt of this run: {clean(str(error), 400)}"
    if item.status == "failed":
        return f"Nothing was learnt of this run: {clean(item.reason, 400)}"
    passages = "1 passage" if item.chunks == 1 else f"{item.chunks} passages"
    return f"{item.status.capitalize()}: {passages} of experience, as {item.document_id}."


def experience_of(run: Run) -> str:
    """A Markdown document with a section for each finding, and its candidate's folder as the source.

    Raises `UsageError` when the run has no findings.
    """
    info = run.info
    found = [
        (one, one.experiment, one.finding)
        for one in run.candidates()
        if one.experiment is not None and one.finding is not None
    ]
    if not found:
        raise UsageError(f"The run {run.id} has no findings to learn from; its experiments were not judged.")
    head = _front_matter(run, info, [one for one, _, _ in found])
    sections = [_section(info, one, experiment, finding) for one, experiment, finding in found]
    return "\n".join([head, *sections])


def _front_matter(run: Run, info: RunInfo, candidates: Iterable[Candidate]) -> str:
    sources = ",\n".join(
        f"  {{ id = {_toml(_mark(one))}, title = {_toml(f'Run {run.id}, candidate {one.id}')}, "
        f"url = {_toml(_address(one.path))}, looked_up = {_toml(info.started.date().isoformat())} }}"
        for one in candidates
    )
    title = f"Experience: {_line(info.problem, 80)} on {_line(info.target, 80)} (run {run.id})"
    return f'+++\ntitle = {_toml(title)}\nkind = "experience"\nsources = [\n{sources}\n]\n+++\n'


def _section(info: RunInfo, candidate: Candidate, experiment: Experiment, finding: Finding) -> str:
    measured = "not measured" if finding.measured_uplift is None else f"{finding.measured_uplift:+.1f} %"
    place = f"{info.target} ({info.device})" if info.device else info.target
    lines = [
        f"## Candidate {candidate.id}: {_line(experiment.description, _HEADING)}",
        f"Kernel: {_line(info.problem, 80)}, from {_line(info.kernel, 80)}. Target: {_line(place, 200)}. "
        f"Strategy: {experiment.strategy}.",
        f"Tried: {_line(finding.tried, _TEXT)}",
        f"Verdict: {_line(finding.verdict, 80)}. Predicted uplift over its Base ({candidate.parent_id}): "
        f"{finding.predicted_min:+.1f} % to {finding.predicted_max:+.1f} %; measured: {measured} "
        f"({finding.calibration}) [{_mark(candidate)}].",
        f"What happened: {_line(finding.happened, _TEXT)}",
    ]
    if finding.next:
        lines.append(f"Next: {_line(finding.next, _TEXT)}")
    return "\n\n".join(lines) + "\n"


def _mark(candidate: Candidate) -> str:
    return f"c{candidate.id}"


def _address(kernel: Path) -> str:
    # As a URI: sources are separated by blanks, which a path may hold.
    return kernel.parent.absolute().as_uri()


def _line(text: str, limit: int) -> str:
    """`text` in one line that cannot be taken for one of our source marks."""
    return " ".join(clean(text, limit).replace("[c", "[ c").split())


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
