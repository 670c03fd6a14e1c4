"""Peak rates of AMD's data-centre GPUs, from their data sheets (dense, without sparsity; per device)."""

from __future__ import annotations

from .roofline import BandwidthPoint, Roofline

__all__ = ["GPU_PEAKS", "gpu_roofline"]

# TFLOP/s by the dtype of the arithmetic, matrix units included, and TB/s of HBM. Sources:
# AMD Instinct MI300X, MI300A, MI325X, MI355X and MI250X data sheets on amd.com; "AMD CDNA 3 Architecture" and
# "AMD CDNA 4 Architecture" white papers. MI250X figures are for both of its dies.
GPU_PEAKS: dict[str, tuple[dict[str, float], float]] = {
    "MI300X": (
        {
            "float64": 163.4,
            "float32": 163.4,
            "float16": 1307.4,
            "bfloat16": 1307.4,
            "float8": 2614.9,
            "int8": 2614.9,
        },
        5.3,
    ),
    "MI300A": (
        {
            "float64": 122.6,
            "float32": 122.6,
            "float16": 980.6,
            "bfloat16": 980.6,
            "float8": 1961.2,
            "int8": 1961.2,
        },
        5.3,
    ),
    "MI325X": (
        {
            "float64": 163.4,
            "float32": 163.4,
            "float16": 1307.4,
            "bfloat16": 1307.4,
            "float8": 2614.9,
            "int8": 2614.9,
        },
        6.0,
    ),
    "MI355X": (
        {
            "float64": 78.6,
            "float32": 157.3,
            "float16": 2516.6,
            "bfloat16": 2516.6,
            "float8": 5033.2,
            "int8": 5033.2,
        },
        8.0,
    ),
    "MI250X": (
        {"float64": 95.7, "float32": 95.7, "float16": 383.0, "bfloat16": 383.0, "int8": 383.0},
        3.2768,
    ),
}


def gpu_roofline(name: str) -> Roofline:
    """The speed of light of a GPU by its name in `GPU_PEAKS`; KeyError for another."""
    peaks, terabytes = GPU_PEAKS[name]
    return Roofline(
        flops_per_s={dtype: rate * 1e12 for dtype, rate in peaks.items()},
        bandwidth=(BandwidthPoint(0, terabytes * 1e12),),
        source=f"AMD data sheet of {name}",
    )
