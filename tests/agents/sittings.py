"""Runs that are killed at random instants and resumed until they end: ``python sittings.py KILLS SEED``.

One process imports everything and forks a child for each sitting, so that a sitting takes a fraction of a
second. Prints one JSON document: kills, runs, answers given, answers on record, and what was found wrong.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from runs import PRICED, PaidModel  # type: ignore[import-not-found]

from kernel_scientist.agents import Run, Session, list_runs
from kernel_scientist.agents import events as ev
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

GENERATIONS, EXPERIMENTS, LANES = 4, 2, 2
LATENCY_S, JUDGING_S = 0.01, 0.01
START_S = 0.1
LONGEST_S = 300  # of one sitting, however slow the machine: it hangs
GROWTH = 60_000  # bytes of record between two kills, at most
TOKENS = 1100


class NoLiterature:
    def search(self, query: str, *, limit: int = 8) -> list[Any]:
        return []


@dataclass
class Report:
    """`answers` were given by the model, `recorded` are on record; `faults` should be empty."""

    kills: int = 0
    runs: int = 0
    answers: int = 0
    recorded: int = 0
    sittings: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def sit(folder: Path) -> None:
    """One sitting: begin the run of this folder, or go on with it."""

    def judged(constants: Any) -> FakeAnswer:
        time.sleep(JUDGING_S)
        return FakeAnswer()

    class Billed(PaidModel):  # type: ignore[misc]
        """Writes down each answer that it gives, as a service writes its bill."""

        def answer(self, messages: Any, tools: Any) -> Any:
            reply = super().answer(messages, tools)
            with (folder / "bill").open("ab") as bill:
                bill.write(b".")
            return reply

    options: dict[str, Any] = {
        "target": FakeTarget(judged),
        "model": Billed(latency_s=LATENCY_S),
        "knowledge": NoLiterature(),
    }
    runs = list_runs(folder)
    if runs:
        Session.resume(runs[-1], **options).run()
        return
    options |= {"generations": GENERATIONS, "experiments": EXPERIMENTS, "lanes": LANES}
    Session("matmul", runs_dir=folder, config=PRICED, **options).run()


def fork(folder: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    signal.alarm(LONGEST_S)
    try:
        sit(folder)
        code = 0
    except BaseException:
        (folder / "traceback").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def kill_until_it_ends(folder: Path, chance: random.Random, report: Report, most: int) -> None:
    """Kill the run's sittings until one ends by itself, or there were `most` kills; then let it end."""
    killed = 0
    while True:
        child = fork(folder)
        if report.kills < most:
            wait_a_little(folder, child, chance)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            break
        if os.WTERMSIG(status) == signal.SIGALRM:
            report.faults.append(f"{folder.name}: a sitting did not end within {LONGEST_S} s")
            return
        report.kills += 1
        killed += 1
    if os.WEXITSTATUS(status):
        report.faults.append((folder / "traceback").read_text())
        return
    report.runs += 1
    report.sittings.append(killed + 1)
    check(folder, killed, report)


def wait_a_little(folder: Path, child: int, chance: random.Random) -> None:
    """Until a random instant: one in four of the start, the others when the record has grown by so much.

    How fast a machine is does not matter then. Returns at once when the child has ended.
    """
    if chance.random() < 0.25:
        time.sleep(chance.uniform(0.0, START_S))
        return
    size = recorded_bytes(folder)
    until = size + chance.uniform(0, GROWTH)
    while (
        recorded_bytes(folder) < until
        and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):
        time.sleep(0.001)
    time.sleep(chance.uniform(0.0, LATENCY_S))


def recorded_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*/events.jsonl"))


def check(folder: Path, killed: int, report: Report) -> None:
    """Whether the run is whole: every step was done, nothing is missing, the totals are right."""
    run: Run = list_runs(folder)[-1]
    events = list(run.events())
    calls = [event for event in events if isinstance(event, ev.ModelCall)]
    given = len((folder / "bill").read_bytes())
    totals, candidates = run.info.totals, run.candidates()[1:]
    report.answers += given
    report.recorded += len(calls)
    done = sorted((one.generation, one.slot) for one in candidates if one.finding is not None)
    steps = [(generation, slot) for generation in range(1, GENERATIONS + 1) for slot in range(EXPERIMENTS)]
    expected = {
        "status": (run.info.status, "not_improved"),
        "steps": (done, steps),
        "calls": (totals.model_calls, len(calls)),
        "tokens": (totals.prompt_tokens + totals.completion_tokens, TOKENS * len(calls)),
        "evaluations": (totals.evaluations, len(steps)),
        "candidates": (totals.candidates, len(candidates)),
        "damaged lines": (run.damaged_lines, 0),
        "seqs": ([event.seq for event in events], list(range(1, len(events) + 1))),
        "at most the call in flight of each lane paid twice": (
            given - len(calls) <= killed * LANES and given >= len(calls),
            True,
        ),
        "files of the candidates": (run.missing_files(), []),
    }
    report.faults += [
        f"{run.id}: {what}: {found} is not {wanted}"
        for what, (found, wanted) in expected.items()
        if found != wanted
    ]


def main(kills: int, seed: int) -> Report:
    report, chance = Report(), random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        while report.kills < kills and not report.faults:
            folder = Path(place) / f"{report.runs:03d}"
            folder.mkdir()
            kill_until_it_ends(folder, chance, report, kills)
    return report


if __name__ == "__main__":
    # Once, for all sittings: it takes longer than a sitting.
    import_module("kernel_scientist.agents.loop")
    print(json.dumps(asdict(main(int(sys.argv[1]), int(sys.argv[2])))))
