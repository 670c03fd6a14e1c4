"""One sentence on how a worker ended, from its control page and exit status: evidence, never a verdict."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from .code_image import IMAGE_END, IMAGE_START
from .worker_plan import MAX_THREADS, STACK_BYTES, STACK_STRIDE, STACKS, Control
from .workspace import GUARD_BYTES, Placement

__all__ = ["describe_crash"]

_FAULTS: dict[int, str] = {
    signal.SIGILL: "executed an illegal instruction or a trap (reached code that must not be reached)",
    signal.SIGTRAP: "hit a breakpoint trap",
    signal.SIGBUS: "accessed memory that is not there (bus error)",
}
_SI_KERNEL = 128
_LDS_OVERRUN = 10_000  # KS_LDS_OVERRUN of abi.h
_NEAR_NULL = 1 << 16
# The x86-64 system calls a kernel is likeliest to try (arch/x86/entry/syscalls/syscall_64.tbl).
_CALLS = {
    0: "read", 1: "write", 2: "open", 3: "close", 9: "mmap", 10: "mprotect", 12: "brk", 13: "rt_sigaction",
    14: "rt_sigprocmask", 16: "ioctl", 24: "sched_yield", 32: "dup", 33: "dup2", 35: "nanosleep",
    39: "getpid",
    41: "socket", 42: "connect", 56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 62: "kill",
    87: "unlink", 96: "gettimeofday", 101: "ptrace", 141: "setpriority", 157: "prctl",
    203: "sched_setaffinity",
    202: "futex", 228: "clock_gettime", 257: "openat", 310: "process_vm_readv", 311: "process_vm_writev",
    319: "memfd_create", 425: "io_uring_setup", 435: "clone3",
}  # fmt: skip


def describe_crash(control: Control, status: int, places: Sequence[Placement], launches: int) -> str:
    """`status` is negative for a signal; `places` are the batch's regions, `launches` the steps of a run."""
    if control.signal == 0:
        return _ended(status)
    where = f" in run {control.run}"
    if launches > 1:
        where += f", step {control.step % launches}"
    return f"The kernel {_fault(control, places)}{where}."


def _ended(status: int) -> str:
    if status >= 0:
        return f"The worker exited with status {status} before it was done."
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"The worker was killed by {name} before it was done."


def _fault(control: Control, places: Sequence[Placement]) -> str:
    if control.error == _LDS_OVERRUN and control.signal == signal.SIGILL:
        return "wrote to dynamic LDS beyond the bytes that the plan's lds asks for"
    if control.signal == signal.SIGSYS:
        name = _CALLS.get(control.syscall, f"number {control.syscall}")
        return f"made the system call {name!r}, which is not allowed"
    if control.signal == signal.SIGFPE:
        return "divided an integer by zero or overflowed a division"
    if control.signal == signal.SIGSEGV:
        return _segmentation_fault(control, places)
    return _FAULTS.get(control.signal, f"raised signal {control.signal}")


def _segmentation_fault(control: Control, places: Sequence[Placement]) -> str:
    address = control.address
    verb = "wrote" if control.wrote else "read"
    if control.code == _SI_KERNEL:
        return "used an address that no memory can have"
    if address < _NEAR_NULL:
        return f"{verb} through a null pointer (address {address:#x})"
    if STACKS - STACK_STRIDE <= address < STACKS + MAX_THREADS * STACK_STRIDE:
        return f"overflowed the stack of a thread ({STACK_BYTES >> 10} KiB)"
    if abs(address - control.stack) < 2 * STACK_STRIDE:
        return "overflowed its stack"
    if IMAGE_START <= address < IMAGE_END:
        return (
            f"{verb} at {address:#x}, among its own code and constants"
            if control.wrote
            else f"read at {address:#x}"
        )
    return _near_region(address, verb, places) or f"{verb} at {address:#x}, where no buffer is"


def _near_region(address: int, verb: str, places: Sequence[Placement]) -> str | None:
    for place in places:
        name = repr(place.region.name)
        if place.page_address <= address < place.page_address + place.page_bytes:
            offset = address - place.address
            return f"{verb} to {name} at byte {offset}, an input that is read-only,"
        if place.end <= address < place.end + GUARD_BYTES // 2:
            return f"{verb} past the end of {name} by {_count(address - place.end + 1)}"
        if place.page_address - GUARD_BYTES // 2 <= address < place.page_address:
            return f"{verb} before the start of {name} by {_count(place.address - address)}"
    return None


def _count(nbytes: int) -> str:
    return f"{nbytes} byte" if nbytes == 1 else f"{nbytes} bytes"
