"""Runs tests that the ordinary user had to skip once more, and fails for those that nobody could run.

The argument is a folder with the JUnit files of the runs so far. A test whose reason begins with "optional:"
needs what no check can expect to have; it is listed and does not fail.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def skipped(folder: Path) -> dict[str, str]:
    """The reason by test, for those that were skipped in every run they were part of."""
    reasons: dict[str, str] = {}
    ran: set[str] = set()
    for file in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
            skip = case.find("skipped")
            if skip is None:
                ran.add(name)
            else:
                reasons[name] = skip.get("message", "")
    return {name: reason for name, reason in reasons.items() if name not in ran}


def main() -> int:
    folder = Path(sys.argv[1])
    again = [name for name, reason in skipped(folder).items() if not reason.startswith("optional:")]
    if again:
        command = [sys.executable, "-P", "-m", "pytest", "-q", f"--junit-xml={folder / 'again.xml'}", *again]
        if subprocess.run(command, check=False).returncode:
            return 1
    left = skipped(folder)
    for name, reason in left.items():
        print(f"not run: {name}: {reason}")
    return int(any(not reason.startswith("optional:") for reason in left.values()))


if __name__ == "__main__":
    sys.exit(main())
