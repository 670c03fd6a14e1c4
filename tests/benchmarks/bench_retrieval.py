"""Whether the right passages are found, and how long a query takes: 239 questions, see `retrieval`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from retrieval.documents import PAGE_LETTERS, cache_folder, fetch_documents
from retrieval.latency import print_latency
from retrieval.measures import difference, measure
from retrieval.questions import HALVES, KINDS, Question, questions
from retrieval.rankings import SYSTEMS, Named, first_right

from kernel_scientist.knowledge import KnowledgeBase

Ranks = dict[str, list[int | None]]


def main() -> None:
    """Print how well each side alone and both together answer, on each half, then the latency."""
    asked = questions()
    # Embedding the documents takes minutes, so the base is kept; adding them again is free.
    with KnowledgeBase.open(cache_folder() / "base") as base:
        base.add(fetch_documents())
        named = Named(base)
        letters = sum(len(passage.text) for one in base.documents() for passage in base.passages(one.id))
        print(
            f"{base.status().chunks:,} passages of {len(named.names)} documents, about "
            f"{letters // PAGE_LETTERS} pages; {len(asked)} questions; 95 % bootstrap intervals"
        )
        ranks: Ranks = {
            name: [first_right(question, ranking(named, question.text)) for question in asked]
            for name, ranking in SYSTEMS.items()
        }
    for half in HALVES:
        _print_half(half, asked, ranks)
    print_latency(cache_folder() / "scale", [question.text for question in asked])


def _print_half(half: str, asked: Sequence[Question], ranks: Ranks) -> None:
    print(f"\n{half} half {'':22} recall@1           recall@5           MRR")
    for kind in (*KINDS, "all"):
        chosen = [i for i, one in enumerate(asked) if one.half == half and kind in (one.kind, "all")]
        for name, all_ranks in ranks.items():
            figures = "  ".join(str(figure) for figure in measure([all_ranks[i] for i in chosen]))
            print(f"  {kind:13} n = {len(chosen):3}  {name:8} {figures}")
        mine = [ranks["hybrid"][i] for i in chosen]
        for other in ("lexical", "dense"):
            ahead = difference(mine, [ranks[other][i] for i in chosen])
            print(f"  {kind:13} hybrid's MRR above {other:8} {ahead}")


if __name__ == "__main__":
    main()
