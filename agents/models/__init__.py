"""Language models: the built-in ones, any OpenAI-compatible endpoint, and the wrapper that records them."""

from __future__ import annotations
