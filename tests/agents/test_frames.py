"""Candidates as a data frame; without pandas a sentence that says what to install."""

from __future__ import annotations

import sys

import pytest

from kernel_scientist.agents.frames import COLUMNS, candidates_frame
from kernel_scientist.sandbox.errors import UnusableEnvironment

from .conftest import Hold


def test_a_frame_has_a_row_for_each_candidate_with_the_documented_columns(hold: Hold) -> None:
    pytest.importorskip("pandas")
    run = hold(generations=1).run
    frame = run.candidates_frame()

    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["candidate"]) == ["0000", "0001", "0002", "0003"]
    assert frame["speedup"].tolist() == [one.evaluation.speedup.value for one in run.candidates()]  # type: ignore[union-attr]
    assert frame["uplift"].isna().tolist() == [True, False, False, False]
    assert len(candidates_frame([run, run])) == 8


def test_without_pandas_the_message_says_what_to_install(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hold(generations=1).run
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnusableEnvironment, match=r"pip install 'kernel-scientist\[frames\]'"):
        run.candidates_frame()
