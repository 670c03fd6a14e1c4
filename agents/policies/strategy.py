"""The techniques an experiment can be filed under: a closed set, so that a record can be kept of each."""

from __future__ import annotations

import re
from typing import Literal, get_args

__all__ = ["STRATEGIES", "Strategy", "strategy_named"]

Strategy = Literal[
    "tiling",
    "register tiling",
    "vector loads",
    "LDS layout",
    "MFMA",
    "split-K",
    "fusion",
    "unrolling",
    "pipelining",
    "occupancy",
    "work order",
    "reduction",
    "precision",
    "memory traffic",
    "control flow",
    "tuning",
    "portfolio",
    "other",
]

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

# What models call them besides; the first pattern that is found wins, so the narrower ones come first.
_ALIASES: tuple[tuple[str, Strategy], ...] = (
    (r"portfolio|special(is|iz)|per.shape|dispatch", "portfolio"),
    (r"mfma|matrix.?(core|instruction|unit)|wmma|tensor.?core", "MFMA"),
    (r"split.?k|stream.?k|slice.?k", "split-K"),
    (r"regist\w*.?(tiling|block)|thread.?(tiling|coarsen)|micro.?(tile|kernel)|coarsen", "register tiling"),
    (r"lds|shared.?mem|bank|swizzl|padding", "LDS layout"),
    (r"vector|wide|128.?bit|float4|dwordx|coalesc", "vector loads"),
    (r"pipelin|double.?buffer|prefetch|async", "pipelining"),
    (r"unroll", "unrolling"),
    (r"fus(e|ion|ing)", "fusion"),
    (r"occupancy|launch.?bound|register.?pressure|block.?size|work.?group", "occupancy"),
    (r"work.?order|xcd|raster|block.?order|grid.?order|cache.?block|locality", "work order"),
    (r"reduc|shuffle|wave.?(sum|scan)|atomic", "reduction"),
    (r"precision|fp8|bf16|fp16|mixed|accuracy|fast.?math", "precision"),
    (r"tiling|tile|blocking", "tiling"),
    (r"memory.?traffic|cach(e|ing)|recomput|reuse|stream", "memory traffic"),
    (r"branch|diverge|control.?flow|predicat|loop", "control flow"),
    (r"tun(e|ing)|parameter|constant", "tuning"),
)
_KNOWN: dict[str, Strategy] = {name.casefold(): name for name in STRATEGIES}
_LOOKED_AT = 200


def strategy_named(text: str) -> Strategy:
    """The strategy that `text` names, by its own name or one that is usual for it; else ``other``."""
    words = " ".join(text[:_LOOKED_AT].casefold().replace("_", " ").split())
    if words in _KNOWN:
        return _KNOWN[words]
    for pattern, name in _ALIASES:
        if re.search(pattern, words):
            return name
    return "other"
