"""What a relocatable x86-64 object defines, lacks and reaches, read from its symbols and relocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from elftools.elf.relocation import RelocationSection
    from elftools.elf.sections import SymbolTableSection

__all__ = ["ObjectFile", "Reach"]

_R_X86_64_PLT32 = 4
_FIRST_RESERVED_SECTION = 0xFF00


@dataclass(frozen=True, slots=True)
class Reach:
    """What can be got to from a symbol: sections of the object, and symbols that it leaves to others."""

    sections: frozenset[int]
    undefined: frozenset[str]


@final
class ObjectFile:
    """An object compiled with a section per function, so that sections are the nodes of the call graph."""

    def __init__(self, path: Path) -> None:
        # Imported where it is used: a cached build needs none of it, and it is slow to load.
        from elftools.elf.elffile import ELFFile
        from elftools.elf.relocation import RelocationSection
        from elftools.elf.sections import SymbolTableSection

        self.defined: dict[str, int] = {}
        self.undefined: dict[str, None] = {}
        self.called: set[str] = set()
        self.section_names: list[str] = []
        self.section_sizes: list[int] = []
        self._edges: dict[int, set[int | str]] = {}
        with path.open("rb") as file:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                self.section_names.append(str(section.name))
                self.section_sizes.append(int(section["sh_size"]))
            symbols = elf.get_section_by_name(".symtab")
            if isinstance(symbols, SymbolTableSection):
                targets = self._read_symbols(symbols)
                for section in elf.iter_sections():
                    if isinstance(section, RelocationSection):
                        self._read_relocations(section, targets)

    def reach(self, symbol: str) -> Reach:
        """Everything that code starting at `symbol` could come to, calls through pointers included."""
        sections: set[int] = set()
        undefined: set[str] = set()
        pending: list[int | str] = [self.defined[symbol]]
        while pending:
            node = pending.pop()
            if isinstance(node, str):
                undefined.add(node)
            elif node not in sections:
                sections.add(node)
                pending.extend(self._edges.get(node, ()))
        return Reach(frozenset(sections), frozenset(undefined))

    def bytes_in(self, sections: Iterable[int], prefix: str) -> int:
        """Total size of those of `sections` whose names start with `prefix`."""
        return sum(
            self.section_sizes[index] for index in sections if self.section_names[index].startswith(prefix)
        )

    def _read_symbols(self, table: SymbolTableSection) -> list[int | str]:
        """Where each symbol leads: to a section here, or (its name) elsewhere; -1 for neither."""
        targets: list[int | str] = []
        for symbol in table.iter_symbols():
            where, name = symbol["st_shndx"], str(symbol.name)
            if where == "SHN_UNDEF" and name:
                self.undefined[name] = None
                targets.append(name)
            elif isinstance(where, int) and where < _FIRST_RESERVED_SECTION:
                targets.append(where)
                if name:
                    self.defined[name] = where
            else:
                targets.append(-1)
        return targets

    def _read_relocations(self, section: RelocationSection, targets: list[int | str]) -> None:
        edges = self._edges.setdefault(int(section["sh_info"]), set())
        for relocation in section.iter_relocations():
            target = targets[int(relocation["r_info_sym"])]
            if target == -1:
                continue
            edges.add(target)
            if isinstance(target, str) and relocation["r_info_type"] == _R_X86_64_PLT32:
                self.called.add(target)
