"""The memory a batch of runs works on, shared between the judge and a worker.

Covered: each run has its own regions; the worker maps inputs read-only through a read-only descriptor;
every region ends (up to 16-byte alignment) where its last page ends, and at least `GUARD_BYTES` of
unmapped addresses separate it from its neighbours; what the pages hold beyond the region is filled and
checked. Where a device has no such pages to offer, `slack_bytes` of filled and checked memory lie on both
sides of the region instead. Not covered: reads of that slack, which lie within the region's own pages.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, final

from .errors import UnusableEnvironment
from .execution import Region

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GUARD_BYTES", "Placement", "Workspace"]

_PAGE = mmap.PAGESIZE
_ALIGNMENT = 16
_FIRST_ADDRESS = 0x1000_0000_0000
GUARD_BYTES = 16 << 20
"""Unmapped addresses on both sides of every region: a stray index of millions still hits them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one region of one run lives: its pages in the file, its pages and data in the worker."""

    run: int
    region: Region
    offset: int
    page_address: int
    page_bytes: int
    slack_bytes: int = 0

    @property
    def address(self) -> int:
        """The first byte of the region in the worker, 16-byte aligned."""
        return self.page_address + self.lead

    @property
    def lead(self) -> int:
        """Slack before the region's first byte: all that there is, where none was asked for."""
        if self.slack_bytes:
            return self.slack_bytes
        aligned = -(-self.region.nbytes // _ALIGNMENT) * _ALIGNMENT
        return self.page_bytes - aligned

    @property
    def end(self) -> int:
        return self.address + self.region.nbytes


@final
class Workspace:
    """Regions for `runs` runs; a context manager that frees the memory at its end.

    `slack_bytes` (whole pages) on each side are part of the region's pages and travel with them.
    Raises `UnusableEnvironment` when the machine refuses the memory.
    """

    def __init__(self, regions: Sequence[Region], runs: int, *, slack_bytes: int = 0) -> None:
        if runs < 1 or any(region.nbytes < 0 for region in regions):
            raise ValueError("a workspace needs at least one run and no negative sizes")
        self.regions = tuple(regions)
        self.runs = runs
        self._placements = [[*row] for row in _place(self.regions, runs, slack_bytes)]
        self._files = {
            access: _SharedFile(
                f"ks-{access}", sum(p.page_bytes for p in self.placements() if p.region.access == access)
            )
            for access in ("read", "write")
        }
        self._slack_byte = 0xFF
        self._fill_slack(("read", "write"))

    @property
    def nbytes(self) -> int:
        """All memory of the workspace, guard pages excluded."""
        return sum(p.page_bytes for p in self.placements())

    @property
    def read_fd(self) -> int:
        """A descriptor for the read regions through which they cannot be written."""
        return self._files["read"].reader

    @property
    def write_fd(self) -> int:
        return self._files["write"].fd

    def file_bytes(self, access: Literal["read", "write"]) -> int:
        """The size of the file that holds these regions."""
        return len(self._files[access].map)

    def placements(self, first: int = 0, count: int | None = None) -> Iterator[Placement]:
        """Of runs `first` to ``first + count - 1``, in order of run and region."""
        for row in self._placements[first : None if count is None else first + count]:
            yield from row

    def placement(self, run: int, region: int) -> Placement:
        return self._placements[run][region]

    def view(self, run: int, region: int) -> memoryview:
        """The bytes of one region of one run, writable (whatever the worker may do with them)."""
        place = self._placements[run][region]
        start = place.offset + place.lead
        return memoryview(self._files[place.region.access].map)[start : start + place.region.nbytes]

    def fill(self, region: int, data: bytes | memoryview) -> None:
        """Put the same bytes into one region of every run."""
        for run in range(self.runs):
            self.view(run, region)[:] = data

    def poison(self, pattern_byte: int = 0xFF) -> None:
        """Set every byte of all writable regions and of the slack round them."""
        self._slack_byte = pattern_byte
        self._files["write"].bytes()[:] = pattern_byte

    def damaged(self) -> list[str]:
        """Names of writable regions of which any run's slack no longer holds what it was filled with."""
        names: dict[str, None] = {}
        for place in self.placements():
            if place.region.access == "write" and any(
                (part != self._slack_byte).any() for part in self._slack(place)
            ):
                names[place.region.name] = None
        return list(names)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _slack(self, place: Placement) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        data = self._files[place.region.access].bytes()[place.offset : place.offset + place.page_bytes]
        return data[: place.lead], data[place.lead + place.region.nbytes :]

    def _fill_slack(self, accesses: Sequence[str]) -> None:
        for place in self.placements():
            if place.region.access in accesses:
                for part in self._slack(place):
                    part[:] = self._slack_byte


def _place(regions: Sequence[Region], runs: int, slack_bytes: int) -> Iterator[Iterator[Placement]]:
    offsets = {"read": 0, "write": 0}
    address = _FIRST_ADDRESS

    def row(run: int) -> Iterator[Placement]:
        nonlocal address
        for region in regions:
            pages = max(1, -(-region.nbytes // _PAGE)) * _PAGE + 2 * slack_bytes
            address += GUARD_BYTES
            yield Placement(run, region, offsets[region.access], address, pages, slack_bytes)
            offsets[region.access] += pages
            address += pages

    for run in range(runs):
        yield row(run)


class _SharedFile:
    """Anonymous shared memory whose size nobody can change any more."""

    def __init__(self, name: str, nbytes: int) -> None:
        size = max(nbytes, _PAGE)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            self.reader = os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)
            self.map = mmap.mmap(self.fd, size)
        except OSError as error:
            os.close(self.fd)
            raise UnusableEnvironment(
                f"Cannot get {size} bytes of shared memory ({error.strerror}); "
                "use smaller shapes or free memory."
            ) from error

    def bytes(self) -> NDArray[np.uint8]:
        import numpy as np

        return np.frombuffer(self.map, dtype=np.uint8)

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.reader)
        # Arrays that still look into the memory keep it alive; it goes with the last of them.
        with contextlib.suppress(BufferError):
            self.map.close()
