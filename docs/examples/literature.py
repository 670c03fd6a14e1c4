"""Literature of your own beside the bundled library, and what a search finds in both."""

from pathlib import Path

from kernel_scientist.knowledge import KnowledgeBase

notes = Path("my-notes.md")
notes.write_text(
    "# Notes on LDS\n\n"
    "A column read from LDS meets bank conflicts when a row is a multiple of 32 floats; a pad of one float "
    "spreads the column over all banks.\n"
)

with KnowledgeBase.open() as base:
    base.add(notes, tags=["lds"])
    for passage in base.search("bank conflicts when reading a column", limit=3):
        print(f"{passage.citation}\n    {passage.text[:100]}")
