"""Made-up search spaces with the structure of real ones, for search alone. Nothing was measured.

Each is a little model of a kernel: traffic, reuse, occupancy by registers and LDS, alignment, padding, with
steps where a resource runs out, pairs of parameters that are good only together, and some noise.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping

__all__ = ["SYNTHETIC", "Times"]

Choice = Mapping[str, int]
Times = dict[tuple[int, ...], float | None]


def _chance(*what: object) -> float:
    """A number from 0 to 1 that belongs to `what`."""
    digest = hashlib.blake2b(repr(what).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _occupancy(threads: int, registers: int, lds: int) -> float:
    """The share of a compute unit's 32 waves that fit."""
    waves = math.ceil(threads / 64)
    by_registers = 512 // max(registers, 1) * 4 // waves
    by_lds = 65536 // lds if lds else 32
    return min(1.0, min(by_registers, by_lds, 32 // waves) * waves / 32)


def _convolution(p: Choice) -> float | None:
    wide, high = p["block_x"] * p["tile_x"], p["block_y"] * p["tile_y"]
    tile = p["tile_x"] * p["tile_y"]
    registers = 20 + 2 * tile + 8 * p["read_only"]
    lds = 4 * (wide + 16 + p["pad"]) * (high + 16) if p["staged"] else 0
    occupancy = _occupancy(p["block_x"] * p["block_y"], registers, lds) if lds <= 65536 else 0.0
    if not occupancy:
        return None
    halo = (wide + 16) * (high + 16) / (wide * high)
    memory = 0.5 * halo * (1.0 if p["staged"] else 2.2 / (1 + 0.6 * p["read_only"]))
    memory *= (
        1 + 0.27 * math.log2(32 / p["block_x"]) if p["block_x"] < 32 else 1 + 0.1 * (p["block_x"] % 64 > 0)
    )
    work = (tile + 1.5) / tile * (1.5 if p["staged"] and not p["pad"] and (wide + 16) % 32 == 0 else 1.0)
    waste = math.ceil(4096 / wide) * wide * math.ceil(4096 / high) * high / 4096**2
    time = (max(work, memory) + 0.3 * min(work, memory)) * waste / (0.2 + 0.8 * min(1.0, 1.8 * occupancy))
    time *= 1 + max(0, registers - 96) / 40
    time *= (
        1 + 0.15 * _chance(p["tile_x"], p["tile_y"], p["staged"]) + 0.1 * _chance(p["block_x"], p["block_y"])
    )
    return time * (1 + 0.04 * _chance("noise", *p.values()))


def _dedispersion(p: Choice) -> float | None:
    threads, tile = p["block_x"] * p["block_y"], p["tile_x"] * p["tile_y"]
    occupancy = _occupancy(threads, 16 + 2 * tile + 2 * p["unroll"], 0)
    if p["blocks"]:
        occupancy = min(occupancy, p["blocks"] * threads / 2048 + 0.2)
    if not occupancy:
        return None
    memory = 1 / (0.3 + 0.7 * (1 - 1 / (p["tile_y"] * p["block_y"])))
    memory *= 1 + 0.5 * max(0.0, 5 - math.log2(p["block_x"])) + 0.25 * (not p["stride_x"] and p["tile_x"] > 1)
    work = 1 + 0.5 / min(tile, 8) + 0.2 / (1 + math.log2(1 + p["unroll"]))
    time = memory * work / (0.25 + 0.75 * min(1.0, 1.5 * occupancy)) * (1 + 0.1 * p["stride_y"])
    time *= 1 + 0.12 * _chance(p["block_x"], p["tile_x"]) + 0.05 * _chance(p["unroll"], p["tile_y"])
    return time * (1 + 0.02 * _chance("noise", *p.values()))


def _space(
    lists: Mapping[str, tuple[int, ...]],
    rule: Callable[[Choice], bool],
    time: Callable[[Choice], float | None],
) -> tuple[dict[str, tuple[int, ...]], Times]:
    choices = (dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values()))
    return dict(lists), {tuple(one.values()): time(one) for one in choices if rule(one)}


def convolution() -> tuple[dict[str, tuple[int, ...]], Times]:
    lists = {
        "block_x": (16, 32, 48, 64, 80, 96, 112, 128, 256),
        "block_y": (1, 2, 4, 8, 16, 32),
        "tile_x": (1, 2, 3, 4, 5, 6, 7, 8),
        "tile_y": (1, 2, 3, 4, 5, 6, 7, 8),
        "pad": (0, 1),
        "read_only": (0, 1),
        "staged": (0, 1),
    }

    def rule(p: Choice) -> bool:
        fits = 32 <= p["block_x"] * p["block_y"] <= 1024 and p["tile_x"] * p["tile_y"] < 30
        return fits and (p["staged"] == 1 or p["pad"] == 0)

    return _space(lists, rule, _convolution)


def dedispersion() -> tuple[dict[str, tuple[int, ...]], Times]:
    lists = {
        "block_x": (1, 2, 4, 8, 16, 32, 64, 128),
        "block_y": (1, 2, 4, 8, 16, 32),
        "tile_x": (1, 2, 3, 4, 6),
        "tile_y": (1, 2, 4, 6, 8),
        "stride_x": (0, 1),
        "stride_y": (0, 1),
        "unroll": (0, 2, 4, 16),
        "blocks": (0, 2),
    }

    def rule(p: Choice) -> bool:
        strided = (p["tile_x"] > 1 or not p["stride_x"]) and (p["tile_y"] > 1 or not p["stride_y"])
        return strided and 32 <= p["block_x"] * p["block_y"] <= 1024

    return _space(lists, rule, _dedispersion)


SYNTHETIC = {"synthetic convolution": convolution, "synthetic dedispersion": dedispersion}
