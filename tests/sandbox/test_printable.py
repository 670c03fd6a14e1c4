"""Hidden characters: found in whatever alphabet they come, taken out or escaped, and nothing else lost."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.sandbox.printable import escape_hidden, printable, without_escapes

ANY = st.text(alphabet=st.characters(codec=None), max_size=200)


def hidden(text: str) -> list[str]:
    """By Unicode's own categories, line and paragraph separators among them."""
    kinds = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return [char for char in text if char not in "\n\t" and unicodedata.category(char) in kinds]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("C0", "\x00\x07\x08\x0b\x0c\r\x1b\x7f"),
        ("C1", "\x80\x85\x90\x9b\x9d\x9f"),
        ("direction marks", "\u061c\u200e\u200f"),
        ("direction overrides", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
        ("zero width", "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e"),
        ("separators", "\u2028\u2029"),
        ("tags", "\U000e0001\U000e0041\U000e007f"),
        ("variation selectors", "\ufe00\ufe0f\U000e0100\U000e01ef"),
        ("letters drawn as nothing", "\u034f\u115f\u1160\u3164\uffa0"),
        ("lone surrogates", "\ud800\udfff"),
        ("private use and non-characters", "\ue000\U0010ffff\ufffe"),
    ],
)  # fmt: skip
def test_hidden_characters_go(name: str, text: str) -> None:
    mixed = "".join(f"a{char}" for char in text) + "z"
    assert printable(mixed) == "a" * len(text) + "z", name
    assert printable(mixed, "?") == "a?" * len(text) + "z", name


def test_text_in_any_language_stays_as_it_is() -> None:
    text = "naïve Straße\tµs ≤ 3\nφ = λ/√n  行列積 матрица مصفوفة 🙂 {}`~"
    assert printable(text) == text
    assert without_escapes(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\x1b[31;1mb\x1b[0m", "ab"),
        ("a\x9b2Jb", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\", "ab"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1bcb", "ab"),
    ],
)
def test_terminal_sequences_go_whole(text: str, left: str) -> None:
    assert printable(without_escapes(text)) == left


def test_an_unfinished_sequence_does_not_take_the_rest_with_it() -> None:
    assert printable(without_escapes("error\x1b]0;then the evidence\nand more")).endswith(
        "then the evidence\nand more"
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["\x1b]", "\x1b[", "\x9d", "\x9b1", "\x1b[1;", "\x1bP", "\u202e"])
def test_no_text_makes_cleaning_slow(unit: str) -> None:
    """A quadratic pattern would need hours for these."""
    assert not hidden(printable(without_escapes(unit * 500_000)))


@given(ANY)
def test_nothing_hidden_is_left(text: str) -> None:
    cleaned = printable(without_escapes(text))
    assert not hidden(cleaned)
    assert printable(cleaned) == cleaned


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=5))
def test_escaped_json_is_the_same_document_with_nothing_hidden(value: object) -> None:
    for ascii_only in (True, False):
        text = escape_hidden(json.dumps(value, ensure_ascii=ascii_only))
        assert not hidden(text)
        assert json.loads(text) == json.loads(json.dumps(value))
