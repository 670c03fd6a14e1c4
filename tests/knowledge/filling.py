"""Fills the disk below a knowledge base, in a process of its own, and says what it came to.

    python filling.py WHICH FOLDER    WHICH: truth, index (a small tmpfs, for root in a mount namespace of its
                                      own), or files (no file may grow beyond a limit)

Prints as JSON what was acknowledged before, what was said, and what is there once there is space again.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase

SMALL, LARGE = "3m", "200m"
LIMIT = 600_000
MOST = 60


def main(which: str, folder: Path) -> None:
    place = folder / "base"
    full = place / "index" if which == "index" else place
    full.mkdir(parents=True)
    if which == "files":
        open_base(place).close()
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, resource.RLIM_INFINITY))

        def free() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        mount("tmpfs", full, f"size={SMALL}")

        def free() -> None:
            mount("tmpfs", full, f"remount,size={LARGE}")

    print(json.dumps(fill(which, place, folder, free)))


def fill(which: str, place: Path, folder: Path, free: Callable[[], None]) -> dict[str, object]:
    acknowledged: list[str] = []
    said, found = "", False
    with open_base(place) as base:
        for i in range(MOST):
            path = written(folder, i)
            item = base.add(path).items[0]
            if item.status != "added":
                said = item.reason
                break
            acknowledged.append(path.stem)
            if base.note and which == "index":
                said = base.note
                break
        last = acknowledged[-1].removeprefix("doc")
        found = base.search(f"unique_{last}_3", limit=1)[0].document_id == acknowledged[-1]
    free()
    with open_base(place) as base:
        kept = [one.id for one in base.documents()]
        again = [item.status for item in base.add(written(folder, 0), written(folder, len(kept))).items]
        base.rebuild()
        status = base.status()
    versions = [one for one in (place / "index" / FakeEmbedder.name).iterdir() if one.is_dir()]
    return {
        "acknowledged": acknowledged,
        "said": said,
        "found": found,
        "kept": kept,
        "again": again,
        "damage": status.damage,
        "waiting": status.waiting,
        "versions": len(versions),
    }


def written(folder: Path, number: int) -> Path:
    path = folder / f"doc{number}.md"
    path.write_text("".join(f"## Part {j}\n\nunique_{number}_{j} {'tiles ' * 60}\n\n" for j in range(80)))
    return path


def open_base(place: Path) -> KnowledgeBase:
    return KnowledgeBase.open(place, embedder=FakeEmbedder(), library=False)


def mount(kind: str, place: Path, options: str) -> None:
    subprocess.run(["mount", "-t", kind, "-o", options, kind, str(place)], check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
