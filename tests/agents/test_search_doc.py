"""What docs/search.md shows works as it is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kernel_scientist.agents.config import SearchConfig
from kernel_scientist.agents.policies import POLICIES
from kernel_scientist.agents.policies.meaning import CLOSE
from kernel_scientist.agents.prompting import parse_prompt

from .conftest import Hold

TEXT = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")


def test_the_policy_of_one_s_own_runs_a_session(hold: Hold) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.rpartition("\n\n\nSession(")[0], names)
    held = hold(generations=2, experiments=1, policy=names["Latest"]())
    assert held.result.exit_code == 0


def test_names_and_defaults_are_those_of_the_code() -> None:
    assert all(f"`{name}`" in TEXT for name in POLICIES)
    settings = SearchConfig()
    assert settings.close_in_meaning == CLOSE and f"({CLOSE:g}; above 1" in TEXT
    assert f"`search.enough_light` ({settings.enough_light:g})" in TEXT
    assert f"`search.portfolio_gain` ({settings.portfolio_gain:g} %)" in TEXT


def test_the_prompt_file_that_is_shown_is_one() -> None:
    shown = TEXT[TEXT.index("    <!-- version 1 -->") :].split("\n\n`{{request}}`")[0]
    prompt = parse_prompt("\n".join(line[4:] for line in shown.splitlines()), "docs")
    assert prompt.wording("BLOCK", " (cut)") == "words round the request (cut)\n\nBLOCK\n"
