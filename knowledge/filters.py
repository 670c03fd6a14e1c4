"""Which documents a search may answer from."""

from __future__ import annotations

from dataclasses import dataclass

from .languages import Language
from .records import Document, DocumentKind

__all__ = ["Filters"]


@dataclass(frozen=True, slots=True)
class Filters:
    """A document has to be of that kind and language, and to have all the tags and one of the architectures.

    One that names no architecture is about all of them. Letters' case counts for nothing.
    """

    kind: DocumentKind | None = None
    tags: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    language: Language | None = None

    def __bool__(self) -> bool:
        return bool(self.kind or self.tags or self.architectures or self.language)

    def admit(self, document: Document) -> bool:
        """Whether a search may answer from `document`."""
        named = _folded(document.architectures)
        return (
            (self.kind is None or document.kind == self.kind)
            and _folded(self.tags) <= _folded(document.tags)
            and (not self.architectures or not named or bool(_folded(self.architectures) & named))
            and (self.language is None or document.language == self.language)
        )


def _folded(words: tuple[str, ...]) -> set[str]:
    return {word.strip().casefold() for word in words}
