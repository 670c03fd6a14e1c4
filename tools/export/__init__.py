"""Kernels handed over: as one HIP file, or as Python, that need nothing of this package."""

from .hip_file import export_hip
from .provenance import Exported, Provenance
from .python_file import export_python
from .vectors import all_vectors

__all__ = ["Exported", "Provenance", "all_vectors", "export_hip", "export_python"]
