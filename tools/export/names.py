"""Names of a problem and its plan as C++ names, none of which the language or the exported file uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..dtypes import element_type, is_float
from ..kernel import Kernel
from ..plan import RESERVED_NAMES
from ..problem import Problem
from .cpp import Kind, Translation

__all__ = ["Names", "identifier", "parameter_kind", "parameter_type", "pointer_type"]

# Names that the generated functions use, and macros of the C library.
_TAKEN = RESERVED_NAMES | frozenset(
    word
    for line in (
        "stream workspace status variant grid block shape elements pointers memory bytes offset repeat step_",
        "Integer Kind Buffer least greatest cdiv floordiv modulo power quotient real whole truth usable",
        "convert",
        "extents start fill padded buffers launch launch_plan workspace_bytes std size_t main",
        "errno assert NULL EOF linux unix stdin stdout stderr hipError_t hipStream_t hipSuccess dim3",
    )
    for word in line.split()
)
_PLAIN_FLOATS = {"float32": "float", "float64": "double"}


def identifier(text: str) -> str:
    """`text` as an identifier: what may not stand there becomes an underscore."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return name if re.match(r"[A-Za-z]", name) else f"k_{name}"


class Names:
    """The C++ name of every dimension, scalar, buffer, scratch buffer and constant, each its own."""

    def __init__(self, problem: Problem, kernel: Kernel) -> None:
        wanted = [
            *(buffer.name for buffer in problem.buffers),
            *(scalar.name for scalar in problem.scalars),
            *(scratch.name for scratch in kernel.plan.scratch),
            *kernel.plan.constants,
        ]
        self._names: dict[str, str] = {}
        for name in wanted:
            chosen = name
            while chosen in _TAKEN or chosen in self._names.values():
                chosen += "_"
            self._names[name] = chosen

    def __getitem__(self, name: str) -> str:
        return self._names[name]

    def translations(self, kinds: Mapping[str, Kind]) -> dict[str, Translation]:
        """What expressions may use, of these kinds."""
        return {name: Translation(self._names[name], kind, "atom") for name, kind in kinds.items()}

    def listed(self, names: Iterable[str]) -> list[str]:
        return [self._names[name] for name in names]


def pointer_type(dtype: str) -> str:
    """The C++ type that a launcher's pointer to elements of `dtype` points to.

    Half-precision and 8-bit floats have different types in different releases' headers, so they are void.
    """
    return _PLAIN_FLOATS.get(dtype, "void" if is_float(dtype) else element_type(dtype).hip)


def parameter_type(dtype: str) -> str:
    """The C++ type in which a launcher takes a scalar of `dtype`."""
    return _PLAIN_FLOATS.get(dtype, "float") if is_float(dtype) else element_type(dtype).hip


def parameter_kind(dtype: str) -> Kind:
    return "real" if is_float(dtype) else "integer"
