"""Identifiers of the field in running text: kept whole, and split into parts that words can match."""

from __future__ import annotations

import functools
import re

__all__ = ["canonical", "find_identifiers", "split_parts"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.)[A-Za-z_][A-Za-z0-9_]*)*")
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_MIXED_MIN = 5
# What only says where a name comes from: an instruction, its compiler builtin and its wrapper are one thing.
_PREFIXES = ("__builtin_amdgcn_", "llvm_amdgcn_", "amdgcn_")
_ENCODING_PREFIX = re.compile(r"^[vs]_(?=[a-z])")
_ENCODING_SUFFIX = re.compile(r"_(?:e32|e64|sdwa|dpp)$")
_PARTS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*(?:[a-z][0-9]+)*|[0-9]+(?:x[0-9]+)*|[a-z]+")


def find_identifiers(text: str) -> list[str]:
    """The identifiers in `text`, each once, in order: names with an underscore, inner capitals, or long and
    mixed with digits (``ds_read_b128``, ``hipLaunchKernelGGL``, ``gfx942``; not ``fp8``)."""
    return [name for name in dict.fromkeys(_NAME.findall(text)) if _is_identifier(name)]


def canonical(identifier: str) -> list[str]:
    """The forms under which an identifier is indexed and looked up: as written, and without origin marks."""
    whole = re.sub(r"::|\.", "_", identifier).lower()
    bare = whole
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    bare = _ENCODING_SUFFIX.sub("", _ENCODING_PREFIX.sub("", bare)).strip("_")
    return list(dict.fromkeys(form for form in (whole, bare) if form))


def split_parts(identifier: str) -> list[str]:
    """The words of an identifier, lower case; shapes such as ``32x32x16`` whole and in numbers."""
    parts: list[str] = []
    for piece in re.split(r"[_.:]+", identifier):
        found = [piece] if re.fullmatch(r"[0-9x]+|[A-Za-z]{1,3}[0-9]+", piece) else _PARTS.findall(piece)
        for part in found:
            parts.append(part.lower())
            if re.fullmatch(r"[0-9]+(?:x[0-9]+)+", part):
                parts.extend(part.split("x"))
    return [part for part in parts if part]


@functools.lru_cache(maxsize=1 << 15)
def _is_identifier(name: str) -> bool:
    core = name.strip("_")
    if "_" in core or (name.startswith("__") and core):
        return True
    if "::" in name:
        return True
    if _CAMEL.search(core):
        return True
    has_digit = any(character.isdigit() for character in core)
    return has_digit and len(core) >= _MIXED_MIN and not re.fullmatch(r"[0-9x]+", core)
