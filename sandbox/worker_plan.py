"""The binary plan a worker is given, field by field as ``include/cpu/ks/abi.h`` has it."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .code_image import CodeImage
from .compilation import BufferArgument, CompiledKernel, ScalarArgument
from .execution import Fill, KernelLaunch, Pointer
from .workspace import Workspace

__all__ = [
    "CONTROL_BYTES",
    "MAX_THREADS",
    "STACKS",
    "STACK_BYTES",
    "STACK_STRIDE",
    "Control",
    "Descriptors",
    "element_bytes_of",
    "pack_plan",
]

_MAGIC = 0x6B73303031
_PLAN = 0x5000_0000
STACKS, STACK_BYTES, STACK_STRIDE = 0x6000_0000, 0x1_0000, 0x1_2000
CONTROL_BYTES = 4096
MAX_THREADS = 1024

_PLAN_HEADER = struct.Struct("<Q4iiIIIQQQQQ")
_MAP = struct.Struct("<QQQii")
_LAUNCH_HEAD = struct.Struct("<II")
_LAUNCH = struct.Struct("<II3I3IQQ")
_FILL = struct.Struct("<QQQQ")
_STEP_BYTES = _LAUNCH_HEAD.size + _LAUNCH.size + _FILL.size
_CONTROL = struct.Struct("<4I4QII3I")

_FIBERS, _REVERSE = 1, 2
_REQUIRE_SECCOMP, _REQUIRE_LANDLOCK = 1, 2


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors by their numbers in the worker."""

    command: int
    reply: int
    control: int
    image: int
    read: int
    write: int


@dataclass(frozen=True, slots=True)
class Control:
    """What the worker said about its own end: evidence only, for it may be forged."""

    stage: int
    error: int
    signal: int
    code: int
    address: int
    instruction: int
    stack: int
    syscall: int
    run: int
    step: int
    wrote: int
    landlock: int
    seccomp: int

    @classmethod
    def unpack(cls, page: bytes) -> Control:
        return cls(*_CONTROL.unpack_from(page))


def pack_plan(
    image: CodeImage,
    kernels: Sequence[CompiledKernel],
    workspace: Workspace,
    launches: Sequence[KernelLaunch | Fill],
    descriptors: Descriptors,
    *,
    first: int,
    count: int,
    core: int | None,
    cpu_seconds: int,
    reverse_fibers: bool,
    require_seccomp: bool,
    require_landlock: bool,
) -> bytes:
    """The plan for runs `first` to ``first + count - 1``; its pointers assume the worker's fixed address."""
    maps = _pack_maps(image, workspace, descriptors, first, count)
    maps_at = _PLAN_HEADER.size
    steps_at = maps_at + len(maps)
    step_count = len(launches) * count
    steps = _Steps(_PLAN + steps_at + step_count * _STEP_BYTES)
    for run in range(first, first + count):
        for launch in launches:
            steps.add(launch, run, workspace, kernels, reverse_fibers)
    used = [_fibers(launch, kernels) for launch in launches if isinstance(launch, KernelLaunch)]
    header = _PLAN_HEADER.pack(
        _MAGIC,
        descriptors.command,
        descriptors.reply,
        descriptors.control,
        descriptors.image,
        -1 if core is None else core,
        (_REQUIRE_SECCOMP if require_seccomp else 0) | (_REQUIRE_LANDLOCK if require_landlock else 0),
        max(used, default=0),
        cpu_seconds,
        image.entry,
        len(maps) // _MAP.size,
        step_count,
        _PLAN + maps_at,
        _PLAN + steps_at,
    )
    return b"".join((header, maps, *steps.steps, *steps.slots))


def _fibers(launch: KernelLaunch, kernels: Sequence[CompiledKernel]) -> int:
    x, y, z = launch.block
    if not 1 <= x * y * z <= MAX_THREADS:
        raise ValueError(f"a block of {launch.block} threads cannot be launched")
    return x * y * z if kernels[launch.kernel].needs_fibers else 0


def _pack_maps(image: CodeImage, workspace: Workspace, fds: Descriptors, first: int, count: int) -> bytes:
    packed = [
        _MAP.pack(s.address, s.nbytes, s.offset or 0, -1 if s.offset is None else fds.image, s.protection)
        for s in image.segments
    ]
    for place in workspace.placements(first, count):
        writable = place.region.access == "write"
        fd = fds.write if writable else fds.read
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        packed.append(_MAP.pack(place.page_address, place.page_bytes, place.offset, fd, protection))
    return b"".join(packed)


class _Steps:
    """The steps of a plan and the argument slots behind them, which start at `slots_address`."""

    def __init__(self, slots_address: int) -> None:
        self.steps: list[bytes] = []
        self.slots: list[bytes] = []
        self._slots_address = slots_address

    def add(
        self,
        step: KernelLaunch | Fill,
        run: int,
        workspace: Workspace,
        kernels: Sequence[CompiledKernel],
        reverse_fibers: bool,
    ) -> None:
        if isinstance(step, Fill):
            place = workspace.placement(run, step.region)
            pattern = element_bytes_of(step)
            number = int.from_bytes(pattern, "little")
            fill = _FILL.pack(place.address, place.region.nbytes, number, len(pattern))
            self.steps.append(_LAUNCH_HEAD.pack(run, 1) + bytes(_LAUNCH.size) + fill)
            return
        kernel = kernels[step.kernel]
        slots = b"".join(
            _slot(value, parameter, run, workspace)
            for value, parameter in zip(step.arguments, kernel.entry.arguments, strict=True)
        )
        flags = (_FIBERS if kernel.needs_fibers else 0) | (_REVERSE if reverse_fibers else 0)
        launch = _LAUNCH.pack(
            step.kernel, flags, *step.grid, *step.block, step.dynamic_lds_bytes, self._slots_address
        )
        self.steps.append(_LAUNCH_HEAD.pack(run, 0) + launch + bytes(_FILL.size))
        self.slots.append(slots)
        self._slots_address += len(slots)


def _slot(
    value: Pointer | int | float, parameter: BufferArgument | ScalarArgument, run: int, workspace: Workspace
) -> bytes:
    if isinstance(value, Pointer):
        return struct.pack("<Q", workspace.placement(run, value.region).address)
    if "float" in parameter.dtype:  # float32, bfloat16, float8_e4m3fnuz ...
        return struct.pack("<d", value)
    return struct.pack("<Q", int(value) & 0xFFFF_FFFF_FFFF_FFFF)


def element_bytes_of(fill: Fill) -> bytes:
    """One element of what the region is filled with."""
    import ml_dtypes
    import numpy as np

    dtype = (
        np.dtype(getattr(ml_dtypes, fill.dtype)) if hasattr(ml_dtypes, fill.dtype) else np.dtype(fill.dtype)
    )
    return np.array(fill.value).astype(dtype).tobytes()
