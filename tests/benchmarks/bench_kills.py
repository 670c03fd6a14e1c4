"""Kill -9 at random instants: how many runs ended whole, and what was paid twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

KILLS = 100
DRIVER = Path(__file__).parents[1] / "agents" / "sittings.py"


def main() -> None:
    """Kill sittings at random instants until there were 100 kills; print what became of the runs."""
    seed = int.from_bytes(os.urandom(4))
    done = subprocess.run(
        [sys.executable, "-P", str(DRIVER), str(KILLS), str(seed)], capture_output=True, text=True, check=True
    )
    report = json.loads(done.stdout)
    lost = report["answers"] - report["recorded"]
    print(f"{report['kills']} kills at random instants of {report['runs']} runs in 2 lanes (seed {seed}):")
    print(f"  runs that ended whole, with right totals   {report['runs'] - len(report['faults'])}")
    print(
        f"  sittings a run                             {min(report['sittings'])} to {max(report['sittings'])}"
    )
    print(f"  answers paid for twice                     {lost} of {report['recorded']}")
    print(f"  that is for each kill                      {lost / max(1, report['kills']):.2f}, at most 2")
    for fault in report["faults"]:
        print(f"  wrong: {fault}")
    if report["faults"]:
        raise AssertionError(f"{len(report['faults'])} faults")


if __name__ == "__main__":
    main()
