"""Embeds the bundled notes and writes their vectors into the package's data: to be run after a note changed.

python -m kernel_scientist.knowledge.precompute
"""

from __future__ import annotations

import sys

from .embedding import OfflineEmbedder
from .library import write_vectors


def main() -> None:
    """Write the vectors and say how many."""
    sys.stdout.write(f"{write_vectors(OfflineEmbedder())} vectors written\n")


if __name__ == "__main__":
    main()
