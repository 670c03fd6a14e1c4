"""The paper's policy: the Selector's model chooses, with all it is shown."""

from __future__ import annotations

from typing import final

from .base import Parents, Situation

__all__ = ["PaperPolicy"]


@final
class PaperPolicy:
    """Leaves every choice to the Selector (Andrews & Witteveen, arXiv 2506.20807, section 3)."""

    name = "paper"

    def choose(self, situation: Situation) -> Parents | None:
        """Nothing: the model is asked."""
        del situation
        return None
