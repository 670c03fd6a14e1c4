"""A passage of literature as it is recorded, and as an agent is shown it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import CitedPassage
from .replies import clean
from .requests import PassageView

if TYPE_CHECKING:
    from kernel_scientist.knowledge.records import Passage

__all__ = ["PASSAGE_CHARACTERS", "cited", "passage_view"]

PASSAGE_CHARACTERS = 1800
"""What of one passage an agent is shown."""


def cited(passage: Passage) -> CitedPassage:
    """The passage for the record."""
    citation = passage.citation
    return CitedPassage(
        id=passage.id,
        title=clean(citation.title, 400),
        section=clean(citation.section, 400),
        page=citation.page,
        source=clean(citation.source, 1000),
        looked_up=citation.looked_up or "",
        score=passage.score,
        text=clean(passage.text, PASSAGE_CHARACTERS),
        document_kind=passage.kind,
    )


def passage_view(passage: CitedPassage) -> PassageView:
    """The passage for an agent, its citation in one line."""
    page = f"p. {passage.page}" if passage.page is not None else ""
    parts = (passage.title, passage.section, page, passage.source)
    citation = ", ".join(part for part in parts if part)
    return PassageView(id=passage.id, kind=passage.document_kind, citation=citation, text=passage.text)
