"""Pack run folders as the fixtures of these tests: ``python tests/viewer/pack.py RUN...``

What is packed is what a session recorded, with the folder of the sources and that of the runs written as if
they were elsewhere.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent


def pack(run: Path, target: Path) -> None:
    sources = str(HERE.parent.parent)
    moved = ((sources, "/opt/kernel-scientist"), (str(run.parent.absolute()), "/opt/runs"))
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(path for path in run.rglob("*") if path.is_file()):
            text = path.read_text(encoding="utf-8")
            for old, new in moved:
                text = text.replace(old, new)
            entry = tarfile.TarInfo(str(path.relative_to(run.parent)))
            entry.size = len(data := text.encode())
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    (HERE / "recorded").mkdir(exist_ok=True)
    for name in sys.argv[1:]:
        pack(Path(name), HERE / "recorded" / f"{Path(name).name}.tar.xz")
