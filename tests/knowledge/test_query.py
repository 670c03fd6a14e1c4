"""Identifiers, the glossary, and what kind of query it is."""

from __future__ import annotations

import pytest

from kernel_scientist.knowledge.glossary import expansions
from kernel_scientist.knowledge.identifiers import canonical, find_identifiers, split_parts
from kernel_scientist.knowledge.query import analyse


def test_identifiers_are_found_whole_in_running_text() -> None:
    text = (
        "`ds_read_b128`, __syncthreads(), hipLaunchKernelGGL on gfx942; fp8 and LDS are words, 32x32 is not."
    )

    assert find_identifiers(text) == ["ds_read_b128", "__syncthreads", "hipLaunchKernelGGL", "gfx942"]


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("v_mfma_f32_32x32x16_fp8_fp8", ["v", "mfma", "f32", "32x32x16", "32", "32", "16", "fp8", "fp8"]),
        ("hipDeviceSynchronize", ["hip", "device", "synchronize"]),
        ("ds_read_b128", ["ds", "read", "b128"]),
        ("__syncthreads", ["syncthreads"]),
        ("gfx942", ["gfx942"]),
        ("SQ_LDS_BANK_CONFLICT", ["sq", "lds", "bank", "conflict"]),
    ],
)
def test_identifiers_are_split_into_words(identifier: str, parts: list[str]) -> None:
    assert split_parts(identifier) == parts


def test_an_instruction_and_its_builtin_share_a_form() -> None:
    builtin = canonical("__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8")

    assert set(builtin) & set(canonical("v_mfma_f32_32x32x16_fp8_fp8")) == {"mfma_f32_32x32x16_fp8_fp8"}


def test_abbreviations_are_written_out_once() -> None:
    assert "shared memory" in expansions("padding in LDS")
    assert "shared memory" not in expansions("LDS is shared memory")
    assert "LDS" in expansions("how do I pad shared memory?")
    assert expansions("the crown of the road") == []
    # Words that are abbreviations only in capitals.
    assert expansions("a hip replacement") == []


@pytest.mark.parametrize(
    ("text", "known", "kind"),
    [
        ("what does ds_read_b128 do", {"ds_read_b128"}, "identifier"),
        ("what does ds_read_b999 do", set[str](), "abbreviation"),
        ("LDS padding", set[str](), "abbreviation"),
        ("why is my kernel slow", set[str](), "plain"),
    ],
)
def test_the_kind_of_a_query(text: str, known: set[str], kind: str) -> None:
    assert analyse(text, lambda name: int(name in known), 100).kind == kind


def test_an_identifier_that_is_everywhere_does_not_decide() -> None:
    assert analyse("gfx942 occupancy limits", lambda _: 90, 100).kind == "abbreviation"


def test_what_fts_would_take_for_syntax_is_only_words() -> None:
    query = analyse('NEAR("a" b*) OR NOT -x ^y {col}: "', lambda _: 0, 10)

    assert query.words == '"near" OR "b" OR "x" OR "y" OR "col"'
