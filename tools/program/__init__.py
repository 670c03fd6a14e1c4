"""Problem folders from what is there: a HIP program's kernels and launches, or a template."""

from .folder import new_problem

__all__ = ["new_problem"]
