"""``kernel-scientist export``: a kernel as one file that a user's own build takes in."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_scientist.sandbox.errors import UsageError

from .output import echo, json_option, print_json, remark
from .places import resolve_runs_dir, runs_dir_option
from .text import count, one_line

if TYPE_CHECKING:
    from kernel_scientist.agents.run import Candidate, Run, RunInfo
    from kernel_scientist.tools.export import Exported
    from kernel_scientist.tools.kernel import Kernel
    from kernel_scientist.tools.problem import Problem

__all__ = ["export"]

CPU_CAUTION = "That device is a CPU: it says nothing about the speed on a GPU."
_SUFFIX = {"hip": ".hip", "python": ".py"}


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What is exported: its problem, where it came from, what was measured of it, and its short name."""

    kernel: Kernel
    problem: Problem
    source: str
    measured: tuple[str, ...]
    name: str


@click.command()
@click.argument("what", metavar="RUN|KERNEL")
@click.option("--candidate", metavar="ID", help="This candidate of the run, not its best kernel: 0007.")
@click.option("--problem", metavar="PROBLEM", help="What a KERNEL computes: a bundled name, or a folder.")
@click.option(
    "--language",
    type=click.Choice(["hip", "python"]),
    default="hip",
    show_default=True,
    help="hip: one file for hipcc. python: code objects, and a launcher through HIP's module API.",
)
@click.option(
    "--arch",
    type=click.Choice(["gfx942", "gfx90a", "gfx950"]),
    default="gfx942",
    show_default=True,
    help="With python: the GPU that the code objects are for.",
)
@click.option("--output", metavar="FILE", help="Where it goes.  [default: a name in this folder]")
@click.option(
    "--vectors", metavar="FILE", type=click.Path(path_type=Path), help="Also write all test vectors."
)
@runs_dir_option
@json_option
def export(
    what: str,
    candidate: str | None,
    problem: str | None,
    language: str,
    arch: str,
    output: str | None,
    vectors: Path | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Write a kernel as one file that needs nothing of this program.

    RUN|KERNEL is a run (`last`, an id, the beginning of one, or a folder), whose best kernel is taken; or,
    with --problem, a kernel: a file, or the name of a starting kernel. The file holds the kernel, a launcher
    for its whole launch plan, and a main that checks it against test vectors and times it.

    Exit code 2: there is no such kernel, or its plan cannot be exported.
    """
    chosen = _choose(what, candidate, problem, runs_dir)
    exported = _export(chosen, language, arch)
    path = _place(output, chosen, _SUFFIX[language])
    _write(path, exported.text.encode(), chosen)
    written = [path]
    if vectors is not None:
        from kernel_scientist.tools.export import all_vectors

        _write(vectors, all_vectors(chosen.problem).data, chosen)
        written.append(vectors)
    if as_json:
        print_json(_values(chosen, language, exported, written))
    else:
        _say(chosen, exported, written)
    return 0


def _choose(what: str, candidate: str | None, problem: str | None, runs_dir: Path | None) -> _Chosen:
    if problem is not None:
        if candidate is not None:
            raise UsageError(
                "--candidate belongs to a run, and --problem to a kernel file; give one of them."
            )
        return _of_problem(what, problem)
    if Path(what).is_file():
        raise UsageError(f"{what} is a kernel file; say with --problem what it computes.")
    from kernel_scientist.agents import Run

    return _of_run(Run.open(what, runs_dir=resolve_runs_dir(runs_dir)), candidate)


def _of_problem(what: str, name: str) -> _Chosen:
    from kernel_scientist.tools.problem import Problem

    _require_code(name, "This problem")
    problem = Problem.load(name)
    path = Path(what)
    if not path.exists():
        path = problem.kernel_file(what) if what in problem.kernels else path
    measured = ("Its speed was not measured.",)
    return _Chosen(_load(path), problem, f"kernel file {path.name}", measured, path.stem)


def _require_code(name: str, what: str) -> None:
    from kernel_scientist.tools.problem import RECORDED

    if name.startswith(RECORDED):
        raise UsageError(
            f"{what} plays back a recording, whose kernel holds no code; there is nothing to export."
        )


def _load(path: Path) -> Kernel:
    from kernel_scientist.tools.errors import PlanError
    from kernel_scientist.tools.kernel import Kernel

    try:
        return Kernel.load(path)
    except PlanError as error:
        raise error.as_usage_error() from None


def _of_run(run: Run, wanted: str | None) -> _Chosen:
    info = run.info
    _require_code(info.target, f"Run {run.id}")
    problem = _problem_of(info)
    if wanted is None and info.best is None:
        raise UsageError(
            f"Nothing in run {run.id} beat its start; name a candidate with --candidate "
            f"(see 'kernel-scientist transcript show {run.id}')."
        )
    number = wanted if wanted is not None else info.best.candidate_id if info.best is not None else ""
    found = {one.id: one for one in run.candidates()}
    if number not in found:
        raise UsageError(f"Run {run.id} has no candidate '{number}'; it has {', '.join(found) or 'none'}.")
    measured = _measured(info, found[number])
    source = f"candidate {number} of run {run.id}"
    return _Chosen(_load(found[number].path), problem, source, measured, number)


def _problem_of(info: RunInfo) -> Problem:
    from kernel_scientist.tools.problem import Problem, list_problems

    folder = Path(info.problem_path)
    # A run may have come from another machine, where the bundled problems lie elsewhere.
    elsewhere = info.problem in list_problems() and not (folder / "problem.toml").is_file()
    problem = Problem.load(info.problem if elsewhere or not info.problem_path else folder)
    if info.problem_key and problem.key != info.problem_key:
        remark(f"The problem {problem.folder} is not what it was when the run was made.")
    return problem


def _measured(info: RunInfo, candidate: Candidate) -> tuple[str, ...]:
    """What the run measured of the candidate, with the device it was measured on."""
    evaluation = candidate.evaluation
    best = info.best
    if best is not None and best.candidate_id == candidate.id:
        speedup, tier = best.speedup, best.tier
    elif evaluation is not None and evaluation.accepted and evaluation.speedup is not None:
        speedup, tier = evaluation.speedup, evaluation.tier
    else:
        failed = candidate.verdict not in (None, "accepted")
        verdict = f" The judge's verdict: {candidate.verdict}." if failed else ""
        return (f"Its speed was not measured.{verdict}",)
    start = Path(info.kernel).name or "the starting kernel"
    place = f"{info.device or 'an unnamed device'} (target {info.target}, {tier} tier)"
    sentence = (
        f"Measured on {place}: {speedup.value:.3g} times as fast as {start}, "
        f"{speedup.low:.3g} to {speedup.high:.3g} at {100 * speedup.level:.3g} %."
    )
    return (sentence, CPU_CAUTION) if info.target == "cpu" else (sentence,)


def _export(chosen: _Chosen, language: str, arch: str) -> Exported:
    from importlib.metadata import version

    from kernel_scientist.sandbox.compiler import open_compiler
    from kernel_scientist.tools.errors import PlanError
    from kernel_scientist.tools.export import Provenance, export_hip, export_python

    provenance = Provenance(chosen.source, chosen.measured, version("kernel-scientist"))
    try:
        if language == "python":
            return export_python(chosen.kernel, chosen.problem, provenance, open_compiler(arch))
        return export_hip(chosen.kernel, chosen.problem, provenance)
    except PlanError as error:
        raise error.as_usage_error() from None


def _place(output: str | None, chosen: _Chosen, suffix: str) -> Path:
    if output is not None:
        return Path(output)
    path = Path(f"{chosen.problem.name}_{chosen.name}{suffix}")
    if path.exists():
        raise UsageError(f"{path} is already there; choose with --output where the export goes.")
    return path


def _write(path: Path, data: bytes, chosen: _Chosen) -> None:
    from kernel_scientist.sandbox.files import atomic_write, explained

    own = chosen.kernel.path
    if own is not None and path.exists() and path.samefile(own):
        raise UsageError(f"{path} is the kernel itself; choose another --output.")
    with explained("write the export", path):
        atomic_write(path, data)


def _values(chosen: _Chosen, language: str, exported: Exported, written: list[Path]) -> dict[str, object]:
    return {
        "files": [str(path) for path in written],
        "language": language,
        "problem": chosen.problem.name,
        "kernel": str(chosen.kernel.path),
        "source": chosen.source,
        "measured": list(chosen.measured),
        "builds": exported.builds,
        "vectors": list(exported.vectors),
    }


def _say(chosen: _Chosen, exported: Exported, written: list[Path]) -> None:
    for path in written:
        echo(str(path))
    remark(
        f"{chosen.problem.name}, {chosen.source}: {count(exported.builds, 'build')}, "
        f"{count(len(exported.vectors), 'test vector')} inside."
    )
    for sentence in chosen.measured:
        remark(sentence)
    remark(exported.use.replace("FILE", one_line(shlex.quote(str(written[0]))), 1))
