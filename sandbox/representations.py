"""Which C++ types hold which dtype of a buffer, by the compiler's spelling of the type.

HIP headers differ in how they spell a type (``float4`` is ``HIP_vector_type<float, 4>`` in ROCm), so a list
holds every spelling that is known.
"""

from __future__ import annotations

from .errors import InternalError

__all__ = ["KNOWN_TYPES", "accepted_types", "element_bytes", "is_integer"]

_BF16 = ("__bf16", "__hip_bfloat16", "hip_bfloat16", "__hip_bfloat162", "__hip_bfloat16_raw")
_FP16 = ("_Float16", "__half", "half", "__half2", "half2", "__half_raw", "__half2_raw", "__fp16")
_E4M3_FNUZ = tuple(f"__hip_fp8{width}_e4m3_fnuz" for width in ("", "x2", "x4"))
_E5M2_FNUZ = tuple(f"__hip_fp8{width}_e5m2_fnuz" for width in ("", "x2", "x4"))
_E4M3 = tuple(f"__hip_fp8{width}_e4m3" for width in ("", "x2", "x4"))
_E5M2 = tuple(f"__hip_fp8{width}_e5m2" for width in ("", "x2", "x4"))
_INT8 = ("char", "signed char", "unsigned char")
_INT16 = ("short", "unsigned short")
_INT32 = ("int", "unsigned int")
_INT64 = ("long", "unsigned long", "long long", "unsigned long long")

# dtype: (bytes of an element, spellings without those of vectors)
_DTYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    "bool": (1, ("bool", *_INT8)),
    "int8": (1, _INT8),
    "uint8": (1, _INT8),
    "int16": (2, _INT16),
    "uint16": (2, _INT16),
    "int32": (4, _INT32),
    "uint32": (4, _INT32),
    "int64": (8, _INT64),
    "uint64": (8, _INT64),
    "float16": (2, (*_FP16, *_INT16)),
    "bfloat16": (2, (*_BF16, *_INT16)),
    "float32": (4, ("float",)),
    "float64": (8, ("double",)),
    "float8_e4m3fnuz": (1, (*_E4M3_FNUZ, *_INT8)),
    "float8_e5m2fnuz": (1, (*_E5M2_FNUZ, *_INT8)),
    "float8_e4m3fn": (1, (*_E4M3, *_INT8)),
    "float8_e5m2": (1, (*_E5M2, *_INT8)),
}

_VECTOR_NAMES = {
    "char": "char",
    "signed char": "char",
    "unsigned char": "uchar",
    "short": "short",
    "unsigned short": "ushort",
    "int": "int",
    "unsigned int": "uint",
    "long": "long",
    "unsigned long": "ulong",
    "long long": "longlong",
    "unsigned long long": "ulonglong",
    "float": "float",
    "double": "double",
}


def _with_vectors(types: tuple[str, ...]) -> tuple[str, ...]:
    spellings = list(types)
    for name in types:
        if short := _VECTOR_NAMES.get(name):
            spellings += [f"{short}{width}" for width in (1, 2, 3, 4)]
            spellings += [f"HIP_vector_type<{name}, {width}>" for width in (1, 2, 3, 4)]
    return tuple(dict.fromkeys(spellings))


_ACCEPTED = {dtype: _with_vectors(types) for dtype, (_, types) in _DTYPES.items()}

KNOWN_TYPES: tuple[str, ...] = tuple(dict.fromkeys(name for types in _ACCEPTED.values() for name in types))
"""Every spelling of some dtype: a struct that is none of these is the candidate's own."""


def accepted_types(dtype: str) -> tuple[str, ...]:
    """The spellings of the pointee types that may hold a buffer of `dtype`."""
    return _ACCEPTED[_known(dtype)]


def element_bytes(dtype: str) -> int:
    return _DTYPES[_known(dtype)][0]


def is_integer(dtype: str) -> bool:
    """Whether a scalar of `dtype` is passed as an integer (else as a floating-point number)."""
    return "int" in _known(dtype) or dtype == "bool"


def _known(dtype: str) -> str:
    if dtype not in _DTYPES:
        raise InternalError(f"dtype {dtype!r} has no C++ type; known are {', '.join(_DTYPES)}.")
    return dtype
