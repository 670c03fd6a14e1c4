"""Static instruction counts of a kernel, from the assembly that the compiler writes for a CDNA GPU.

The groups follow the instruction formats of the MI300 ISA guide; a mnemonic's prefix decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["GROUPS", "count_instructions", "entry_symbols", "reads_files"]

_PREFIXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mfma", ("v_mfma_", "v_smfmac_")),
    ("atomic", ("global_atomic_", "buffer_atomic_", "flat_atomic_", "ds_add_", "ds_sub_", "ds_min_",
                "ds_max_", "ds_and_", "ds_or_", "ds_xor_", "ds_inc_", "ds_dec_", "ds_cmpst_", "ds_wrxchg_",
                "ds_pk_add_", "ds_rsub_", "ds_mskor_")),
    ("global_load", ("global_load_", "buffer_load_", "flat_load_")),
    ("global_store", ("global_store_", "buffer_store_", "flat_store_")),
    ("scratch", ("scratch_load_", "scratch_store_")),
    ("lds_shuffle", ("ds_bpermute_", "ds_permute_", "ds_swizzle_")),
    ("lds_read", ("ds_read", "ds_load", "ds_consume", "ds_append")),
    ("lds_write", ("ds_write", "ds_store")),
    ("barrier", ("s_barrier",)),
    ("waitcnt", ("s_waitcnt", "s_wait_")),
    ("branch", ("s_branch", "s_cbranch_", "s_setpc_", "s_swappc_", "s_call_")),
    ("valu", ("v_",)),
    ("salu", ("s_",)),
)  # fmt: skip

GROUPS = tuple(group for group, _ in _PREFIXES)

_LABEL = re.compile(r"^([\w.$]+):")
_ENTRY = re.compile(r"^ks_entry_(\d+):\s*(?:;.*)?\n\s*\.quad\s+([\w.$]+)", re.MULTILINE)
# Directives that read files, and those that could spell such a directive out of pieces.
_READING = re.compile(r"\.(?:incbin|include|macro|altmacro|irpc?|rept)\b", re.IGNORECASE)


def entry_symbols(assembly: str) -> dict[int, str]:
    """The linker name of each exported kernel, by its number."""
    return {int(match[1]): match[2] for match in _ENTRY.finditer(assembly)}


def reads_files(assembly: str) -> bool:
    """Whether assembling this text could read another file (inline assembly can ask for that)."""
    return _READING.search(assembly) is not None


def count_instructions(assembly: str, symbol: str) -> Mapping[str, int]:
    """Instructions by group in the function `symbol`; groups that do not occur are 0."""
    counts = dict.fromkeys(GROUPS, 0)
    for mnemonic in _mnemonics(assembly, symbol):
        for group, prefixes in _PREFIXES:
            if mnemonic.startswith(prefixes):
                counts[group] += 1
                break
    return counts


def _mnemonics(assembly: str, symbol: str) -> Iterator[str]:
    inside = False
    for line in assembly.splitlines():
        label = _LABEL.match(line)
        if label:
            inside = label[1] == symbol or (inside and label[1].startswith(".L"))
            if label[1].startswith(".Lfunc_end"):
                inside = False
        elif inside:
            words = line.split(maxsplit=1)
            if words and words[0][0] not in ".;":
                yield words[0]
