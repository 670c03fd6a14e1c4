"""Counting tokens: exact without a network, and never an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist.knowledge import count_tokens
from kernel_scientist.knowledge.tokens import counting_is_exact, cut_to_tokens

ROOT = Path(__file__).parents[2]


def test_counts_are_tiktokens_own() -> None:
    import tiktoken

    assert counting_is_exact()
    text = "v_mfma_f32_32x32x16_fp8_fp8 reads eight bytes a lane."
    assert count_tokens(text) == len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize(
    "text", ["", "a" * 200_000, "<|endoftext|>", "\ud800 lone surrogate", "\0", "é漢😀" * 5000]
)
def test_any_text_can_be_counted(text: str) -> None:
    assert (count_tokens(text) > 0) == bool(text)


def test_a_cut_text_is_a_prefix_within_the_limit() -> None:
    text = "Shared memory has banks. " * 50

    cut = cut_to_tokens(text, 17)

    assert text.startswith(cut) and 0 < count_tokens(cut) <= 17
    assert cut_to_tokens("short", 17) == "short"


def test_without_a_place_for_the_vocabulary_counts_are_estimates(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = (
        "from kernel_scientist.knowledge.tokens import *\n"
        "print(counting_is_exact(), 10 < count_tokens('hello world ' * 10) < 60)"
    )
    environment = {**os.environ, "KERNEL_SCIENTIST_HOME": str(blocked), "PYTHONPATH": str(ROOT / ".links")}
    environment.pop("TIKTOKEN_CACHE_DIR", None)

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.split() == ["False", "True"]


def test_a_damaged_vocabulary_is_replaced_rather_than_downloaded(tmp_path: Path) -> None:
    code = "from kernel_scientist.knowledge.tokens import *\nprint(counting_is_exact())"
    environment = {**os.environ, "KERNEL_SCIENTIST_HOME": str(tmp_path), "PYTHONPATH": str(ROOT / ".links")}
    environment.pop("TIKTOKEN_CACHE_DIR", None)
    folder = tmp_path / "cache" / "tiktoken"
    folder.mkdir(parents=True)
    (folder / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(b"half a vocabul")

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "True"
