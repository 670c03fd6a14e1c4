"""A kernel's behaviour in a few words: by which technique it was made and what it takes of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_scientist.sandbox.resources import KernelResources

from ..population import Member
from .strategy import strategy_named

__all__ = ["Behaviour", "behaviour_of"]

_KIB = 1024
# Half of a compute unit's 64 KiB of LDS is the most with which two blocks still fit.
_MUCH_LDS = 32 * _KIB
# Waves per SIMD: with fewer than 3 there is little to hide latency with; 8 is the most.
_FEW_WAVES, _MANY_WAVES = 3, 6


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The cell of a MAP-Elites archive. Resource words are ``unknown`` without a gfx942 report."""

    technique: str
    engine: str
    lds: str
    waves: str

    def __str__(self) -> str:
        return f"{self.technique}, {self.engine}, {self.lds}, {self.waves}"

    def differs(self, other: Behaviour) -> int:
        """In how many of the four respects."""
        mine = (self.technique, self.engine, self.lds, self.waves)
        theirs = (other.technique, other.engine, other.lds, other.waves)
        return sum(a != b for a, b in zip(mine, theirs, strict=True))


def behaviour_of(member: Member) -> Behaviour:
    """What `member` does, by its experiment's strategy and the compiler's report on its kernels."""
    technique = "as given" if member.experiment is None else strategy_named(member.experiment.strategy)
    resources = () if member.evaluation is None else member.evaluation.resources
    if not resources:
        return Behaviour(technique, "engine unknown", "LDS unknown", "occupancy unknown")
    return Behaviour(technique, _engine(resources), _lds(resources), _waves(resources))


def _engine(resources: tuple[KernelResources, ...]) -> str:
    matrix = any(one.instructions.get("mfma", 0) for one in resources)
    return "matrix units" if matrix else "vector units"


def _lds(resources: tuple[KernelResources, ...]) -> str:
    most = max(one.lds_bytes for one in resources)
    if most == 0:
        return "no LDS"
    return "little LDS" if most <= _MUCH_LDS else "much LDS"


def _waves(resources: tuple[KernelResources, ...]) -> str:
    least = min(one.occupancy for one in resources)
    if least < _FEW_WAVES:
        return "low occupancy"
    return "high occupancy" if least >= _MANY_WAVES else "medium occupancy"
