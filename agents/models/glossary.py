"""What tunables' names usually mean: what to look up for them, and which passages speak of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Topic", "topics_of"]


@dataclass(frozen=True, slots=True)
class Topic:
    """A technique: `names` matches the constants that govern it, `words` the texts that are about it."""

    strategy: str
    names: re.Pattern[str]
    query: str
    words: re.Pattern[str]
    why: str

    def matches(self, name: str) -> bool:
        return self.names.search(name) is not None

    def mentions_in(self, text: str) -> int:
        """How often a passage speaks of it."""
        return len(self.words.findall(text))


def _topic(strategy: str, names: str, query: str, words: str, why: str) -> Topic:
    return Topic(strategy, re.compile(names, re.IGNORECASE), query, re.compile(words, re.IGNORECASE), why)


_TOPICS = (
    _topic(
        "vector loads",
        r"vec|width|(^|_)load|pack",
        "vectorised global memory loads and stores, bytes per lane, coalescing",
        r"vector|dwordx|coalesc|float4|wide load",
        "Wider accesses move the same bytes with fewer instructions",
    ),
    _topic(
        "register tiling",
        r"thread_[mnk]|(^|_)t[mn]$|per_thread|items|rows_per|cols_per|regs?(_|$)|micro",
        "register tiling, work per thread, reuse of operands in registers, VGPR pressure",
        r"register|VGPR|per thread|per lane|accumulator",
        "More results a thread reuse what it has loaded, until registers run out",
    ),
    _topic(
        "LDS layout",
        r"pad|skew|swizzle|interleave|stride",
        "LDS bank conflicts, padding, layout of shared memory",
        r"bank|padding|LDS|swizzl",
        "Where neighbouring lanes meet in LDS decides whether they wait for one another",
    ),
    _topic(
        "unrolling",
        r"unroll|pipeline|stages|depth|prefetch|buffers?$",
        "loop unrolling, software pipelining, hiding memory latency",
        r"unroll|pipelin|latency|prefetch",
        "Unrolled and pipelined loops leave more to be done while memory answers",
    ),
    _topic(
        "split-K",
        r"split|segments|partial|chunks",
        "split-K, partial sums, parallel reduction across blocks",
        r"split|partial|reduc",
        "Splitting the long dimension gives idle compute units work, at the price of a second pass",
    ),
    _topic(
        "occupancy",
        r"block|threads|waves?|wg|group|size",
        "work-group size, wavefronts, occupancy, launch bounds",
        r"occupancy|wave|work-?group|launch",
        "The block's size sets how many waves hide one another's latency",
    ),
    _topic(
        "tiling",
        r"tile|(^|_)b[mnk]$|block_[mnk]",
        "tile size, matrix multiplication, data reuse in LDS",
        r"tile|tiling|reuse|GEMM",
        "Larger tiles fetch each value fewer times, until LDS and parallelism run out",
    ),
)

_OTHER = _topic(
    "tuning",
    r"",
    "tuning HIP kernels on CDNA3",
    r"tun(e|ing)|kernel",
    "The plan lists other values as worth trying",
)


def topics_of(names: Iterable[str]) -> list[Topic]:
    """The topics that constants belong to, each once, in the order of the constants."""
    found: dict[str, Topic] = {}
    for name in names:
        topic = next((one for one in _TOPICS if one.matches(name)), _OTHER)
        found.setdefault(topic.strategy, topic)
    return list(found.values())
