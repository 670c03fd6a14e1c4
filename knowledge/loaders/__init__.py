"""Files to documents with their structure. A new type is one new module and its line in `registry`."""

from __future__ import annotations

from .document import LoadedDocument, LoadError, Section
from .registry import is_document, load, parse, read_file

__all__ = ["LoadError", "LoadedDocument", "Section", "is_document", "load", "parse", "read_file"]
