"""The programming language of a document that is source code, by its name and what it includes."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, get_args
from urllib.parse import urlsplit

__all__ = ["LANGUAGES", "MARKERS_COLUMN", "Language", "language_of"]

Language = Literal["hip", "cuda", "opencl", "triton", "c++", "python", "assembly", "llvm", "mlir"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_CPLUSPLUS: dict[str, Language] = dict.fromkeys(
    (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inl"), "c++"
)
_BY_SUFFIX: dict[str, Language] = {
    **_CPLUSPLUS,
    ".hip": "hip",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".cl": "opencl",
    ".py": "python",
    ".s": "assembly",
    ".asm": "assembly",
    ".ll": "llvm",
    ".mlir": "mlir",
}

# SQL over a row of `documents`. Texts are looked into only where the name leaves the language open.
MARKERS_COLUMN = """
CASE WHEN source GLOB '*.py' OR source GLOB '*.c*' OR source GLOB '*.h*' OR source GLOB '*.inl' THEN
  CASE WHEN EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id AND text GLOB '*@triton.*jit*')
    THEN 'triton'
  WHEN EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id
               AND (text GLOB '*hip/hip_runtime*' OR text GLOB '*hipLaunchKernel*'))
    THEN 'hip'
  END
END
"""


def language_of(source: str, marker: str | None) -> Language | None:
    """The language of the document that was read from `source`; ``None`` when it is not source code.

    `marker` is what `MARKERS_COLUMN` found in it.
    """
    path = urlsplit(source).path if "://" in source else source
    language = _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
    if language == "python" and marker == "triton":
        return "triton"
    # A .cu file that includes HIP's headers is one of the many that were ported without being renamed.
    if language in ("c++", "cuda") and marker == "hip":
        return "hip"
    return language
