"""Runs every ``bench_*.py`` beside this file and prints their figures: ``make bench``.

``python tests/benchmarks [NAME ...]`` runs only those whose name contains one of the words. A benchmark
is a module with a function ``main()`` that prints its own figures with their units and spread.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent


def load(path: Path) -> Callable[[], object]:
    """The ``main`` of a benchmark file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    main: Callable[[], object] = module.main
    return main


def run(words: list[str]) -> int:
    """Run the chosen benchmarks one after the other; 1 when one of them failed, 2 when none is meant."""
    files = [one for one in sorted(HERE.glob("bench_*.py")) if not words or any(w in one.stem for w in words)]
    if not files:
        print(f"no benchmark is called {' or '.join(words)}", file=sys.stderr)
        return 2
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, Python {platform.python_version()}")
    failed: list[str] = []
    for file in files:
        print(f"\n== {file.stem.removeprefix('bench_')}", flush=True)
        began = time.perf_counter()
        try:
            load(file)()
        except Exception:
            traceback.print_exc()
            failed.append(file.stem)
        print(f"   ({time.perf_counter() - began:.1f} s)", flush=True)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    # Figures of a cold start: caches of earlier runs would hide what compiling costs.
    with tempfile.TemporaryDirectory(prefix="kernel-scientist-bench-") as home:
        os.environ["KERNEL_SCIENTIST_HOME"] = home
        sys.exit(run(sys.argv[1:]))
