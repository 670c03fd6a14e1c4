"""Prompt files: versioned, replaceable by a folder of the user's, refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.prompting import PROMPT_FILES, load_prompts, parse_prompt
from kernel_scientist.sandbox.errors import UsageError

from .conftest import Hold

GOOD = "<!-- version 7 -->\n# System\nYou are terse.\n# Request\nNow:{{left_out}}\n{{request}}\n"


def test_every_agent_has_a_bundled_prompt_with_a_version() -> None:
    prompts = load_prompts()
    assert sorted(prompts) == ["benchmarker", "coder", "researcher", "selector"]
    for prompt in prompts.values():
        assert prompt.version >= 2 and prompt.source == "bundled" and len(prompt.digest) == 64
        assert "```json request\n{}\n```" in prompt.wording("```json request\n{}\n```")


def test_a_file_in_the_user_s_folder_replaces_the_bundled_one_and_is_told_by_its_hash(
    hold: Hold, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "selector.md").write_text(GOOD)
    (mine / ".notes").write_text("hidden files are the user's own business")

    held = hold(generations=1, experiments=1, prompts=mine)
    assert held.result.exit_code == 0
    asked = {call.agent: call.request for call in held.of(ev.ModelCall) if not call.request_prefix}
    assert asked["selector"][0]["content"] == "You are terse."
    assert str(asked["selector"][1]["content"]).startswith("Now:\n```json request\n")
    assert "You are the Coder" in asked["coder"][0]["content"]
    bundled = {name: prompt.digest for name, prompt in load_prompts().items()}
    recorded = held.run.info.prompts
    assert {name for name in recorded if recorded[name] != bundled[name]} == {"selector"}
    assert held.run.info.config["prompts"] == str(mine)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "version 1"),
        ("# System\nx\n# Request\n{{request}}", "version 1"),
        ("<!-- version 1 -->\nYou are.", "'# System', then a part '# Request'"),
        ("<!-- version 1 -->\n# Request\n{{request}}\n# System\nx", "'# System', then"),
        ("<!-- version 1 -->\nHello\n# System\nx\n# Request\n{{request}}", "and no other"),
        ("<!-- version 1 -->\n# System\n# Request\n{{request}}", "is empty"),
        ("<!-- version 1 -->\n# System\nx\n# Request\nno block", "exactly once"),
        ("<!-- version 1 -->\n# System\nx\n# Request\n{{request}} {{request}}", "exactly once"),
        (
            "<!-- version 1 -->\n# System\nx\n# Request\n{{request}} {{problem}}",
            "'{{problem}}' is no placeholder",
        ),
        ("<!-- version 1 -->\n# System\nx {{request}}\n# Request\n{{request}}", "is no placeholder here"),
    ],
)
def test_a_prompt_that_cannot_work_is_refused_with_its_file_and_the_way_out(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_prompt(text, "mine/coder.md")
    assert str(refused.value).startswith("mine/coder.md: ") and said in str(refused.value)


def test_a_request_is_put_in_as_it_is(tmp_path: Path) -> None:
    prompt = parse_prompt(GOOD, "x")
    assert (
        prompt.wording(r"\1 {{left_out}} {{request}}", " cut") == "Now: cut\n\\1 {{left_out}} {{request}}\n"
    )


@pytest.mark.parametrize(
    ("name", "said"), [("codr.md", "did you mean coder.md"), ("README", "prompts are selector.md")]
)
def test_a_file_that_no_agent_has_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_text(GOOD)
    with pytest.raises(UsageError, match=said):
        load_prompts(tmp_path)


def test_a_folder_that_holds_nothing_or_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no prompt"):
        load_prompts(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        load_prompts(tmp_path / "nowhere")
    (tmp_path / "coder.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        load_prompts(tmp_path)
    (tmp_path / "coder.md").unlink()
    (tmp_path / "coder.md").mkdir()
    with pytest.raises(UsageError, match="folder"):
        load_prompts(tmp_path)


def test_prompt_files_are_the_agents(tmp_path: Path) -> None:
    for name in PROMPT_FILES:
        (tmp_path / name).write_text(GOOD)
    assert {prompt.version for prompt in load_prompts(tmp_path).values()} == {7}
