"""Configuration: where values come from, and what is said of wrong ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kernel_scientist.agents import Config, Session, load_config
from kernel_scientist.agents.config import Price
from kernel_scientist.sandbox.errors import UsageError


def test_later_sources_win_and_all_are_joined(tmp_path: Path) -> None:
    (tmp_path / "kernel-scientist.toml").write_text(
        'generations = 7\nmodel = "a"\n[models]\ntimeout_s = 5\n'
        '[models.prices]\n"gpt-4.1" = {input = 1, output = 2}\n'
    )
    environ = {"KERNEL_SCIENTIST_MODEL": "b", "KERNEL_SCIENTIST_LIMITS__MAX_TOKENS": "9", "OTHER": "x"}
    config = load_config(
        folder=tmp_path,
        environ=environ,
        sets=["models.timeout_s=6", "target=cpu"],
        flags={"model": "c", "seed": None},
    )
    assert (config.generations, config.model, config.limits.max_tokens) == (7, "c", 9)
    assert (config.models.timeout_s, config.target) == (6.0, "cpu")
    assert config.models.prices == {"gpt-4.1": Price(input=1, output=2)}


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["generation=3"], "did you mean 'generations'"),
        (["limits.max_token=3"], "did you mean 'limits.max_tokens'"),
        (["models.timeout_s.x=3"], "did you mean 'models.timeout_s'"),
        (["limits=3"], "is a table"),
        (["generations"], "KEY=VALUE"),
        (['prompts="a\\u0000b"'], "'prompts' holds a null character"),
        (["generations=many"], "'generations'"),
        (["lanes=true"], "'lanes' must be a whole number; it is True"),
        (["limits.max_tokens=false"], "'limits.max_tokens' must be a whole number"),
        (["models.timeout_s=true"], "'models.timeout_s' must be a number"),
        (["models.coder.max_output_tokens=true"], "must be a whole number"),
        (["models.prices.m={input=true, output=1}"], "must be a number"),
        (["generations=0"], "'generations'"),
        (["limits.max_cost_usd=-1"], "'limits.max_cost_usd'"),
        (["models.coder.reasoning_effort=huge"], "must be one of 'none', 'minimal', 'low'"),
    ],
)
def test_a_wrong_setting_is_a_sentence_that_names_it(sets: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        load_config(folder=tmp_path, environ={}, sets=sets)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"generations": 0}, "--generations must be at least 1; it is 0."),
        ({"limits.max_tokens": 0}, "--max-tokens must be at least 1; it is 0."),
        ({"limits.max_cost_usd": 0.0}, "--max-cost must be above 0; it is 0.0."),
        ({"limits.max_cost_usd": float("inf")}, "--max-cost must be a finite number; it is inf."),
        ({"seed": -1}, "--seed must be at least 0; it is -1."),
    ],
)
def test_a_wrong_flag_is_named_as_it_was_typed(flags: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load_config(folder=tmp_path, environ={}, flags=flags)
    assert str(error.value) == said


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "localhost:8000",
        "ftp://host/v1",
        "http://",
        "http://host:x/",
        "http://a b/",
        "http://a\nb/",
    ],
)
def test_an_address_that_is_no_endpoint_s_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'models\.base_url' must be an address such as"):
        load_config(folder=tmp_path, environ={}, sets=[f"models.base_url={address}"])


@pytest.mark.parametrize(
    "address", ["http://me:secret@host:99999/v1", "http://me:se/cret@h:x", "http://host/v1?key=secret"]
)
def test_what_an_address_holds_in_confidence_is_not_told(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"hidden") as error:
        load_config(folder=tmp_path, environ={}, flags={"models.base_url": address})
    assert "cret" not in str(error.value)


def test_blanks_round_an_address_are_left_out(tmp_path: Path) -> None:
    config = load_config(folder=tmp_path, environ={}, flags={"models.base_url": " http://host/v1/ "})
    assert config.models.base_url == "http://host/v1/"


def test_a_bad_value_is_told_with_the_place_that_set_it(tmp_path: Path) -> None:
    file = tmp_path / "kernel-scientist.toml"
    file.write_text("[limits]\nmax_tokens = 0\n")
    for environ, sets, place in (
        ({}, [], str(file)),
        ({"KERNEL_SCIENTIST_LIMITS__MAX_TOKENS": "0"}, [], "environment variable KERNEL_SCIENTIST_LIMITS__M"),
        ({"KERNEL_SCIENTIST_LIMITS__MAX_TOKENS": "9"}, ["limits.max_tokens=0"], "--set: "),
    ):
        with pytest.raises(UsageError) as error:
            load_config(folder=tmp_path, environ=environ, sets=sets)
        assert str(error.value).startswith(place)
        assert str(error.value).endswith("'limits.max_tokens' must be at least 1; it is 0.")


def test_a_table_and_an_unknown_key_in_it_are_told_what_keys_there_are(tmp_path: Path) -> None:
    for setting in ("models=1", "models.zz=1", "models={zz=1}"):
        with pytest.raises(UsageError, match=r"base_url, .*prices\.$"):
            load_config(folder=tmp_path, environ={}, sets=[setting])


def test_a_file_with_a_byte_order_mark_is_read_and_a_folder_named(tmp_path: Path) -> None:
    file = tmp_path / "kernel-scientist.toml"
    file.write_bytes(b"\xef\xbb\xbfgenerations = 7\n")
    assert load_config(folder=tmp_path, environ={}).generations == 7
    file.unlink()
    file.mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        load_config(folder=tmp_path, environ={})


def test_unknown_keys_are_found_in_the_file_and_in_the_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"KERNEL_SCIENTIST_MODLE: .* did you mean 'model'"):
        load_config(folder=tmp_path, environ={"KERNEL_SCIENTIST_MODLE": "x"})
    (tmp_path / "kernel-scientist.toml").write_text("[limits]\nmax_times = 3\n")
    with pytest.raises(UsageError, match=r"kernel-scientist\.toml: .* did you mean 'limits\.max_time_s'"):
        load_config(folder=tmp_path, environ={})


@pytest.mark.parametrize("name", ["HOME", "CAGE", "TOOLCHAIN", "DEBUG"])
def test_variables_of_other_rooms_are_no_configuration_keys(name: str, tmp_path: Path) -> None:
    assert load_config(folder=tmp_path, environ={f"KERNEL_SCIENTIST_{name}": "x"}) == load_config(
        folder=tmp_path, environ={}
    )


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernel-scientist.toml").write_text("generations = \n")
    with pytest.raises(UsageError, match=r"kernel-scientist\.toml: is not TOML"):
        load_config(folder=tmp_path, environ={})


def test_a_key_is_neither_dumped_nor_shown(tmp_path: Path) -> None:
    (tmp_path / "kernel-scientist.toml").write_text(
        '[models]\napi_key = "sk-secret-123"\ncoder.api_key = "sk-secret-456"\n'
    )
    config = load_config(folder=tmp_path, environ={})
    assert config.models.api_key is not None and config.models.for_agent("coder").api_key is not None
    assert "sk-secret" not in config.model_dump_json() + repr(config)
    with pytest.raises(UsageError) as error:
        load_config(folder=tmp_path, environ={"KERNEL_SCIENTIST_MODELS__API_KEY": "123456789"})
    assert "123456789" not in str(error.value)


@pytest.mark.parametrize(
    "setting", ["models.api_key=sk-1", "models.coder.api_key=sk-1", "models={api_key='sk-1'}"]
)
def test_a_key_on_the_command_line_is_refused_for_everybody_can_read_it(setting: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="command line; set the variable OPENAI_API_KEY") as error:
        load_config(folder=tmp_path, environ={}, sets=[setting])
    assert "sk-1" not in str(error.value)


def test_an_agent_has_what_is_its_own_and_else_what_all_have(tmp_path: Path) -> None:
    (tmp_path / "kernel-scientist.toml").write_text(
        '[models]\ntemperature = 0.5\nstream = true\nselector = "small"\n'
        '[models.coder]\nmodel = "large"\nreasoning_effort = "high"\nstream = false\n'
    )
    config = load_config(folder=tmp_path, environ={}, sets=["models.coder.temperature=0.1"])
    coder, selector = config.models.for_agent("coder"), config.models.for_agent("selector")
    assert (coder.temperature, coder.reasoning_effort, coder.stream) == (0.1, "high", False)
    assert (selector.temperature, selector.reasoning_effort, selector.stream) == (0.5, None, True)
    assert (config.models.coder.model, config.models.selector.model) == ("large", "small")


def test_a_variable_that_any_room_reads_is_no_unknown_key(tmp_path: Path) -> None:
    top = Path(__file__).parents[2]
    sources = [
        file for room in ("agents", "knowledge", "sandbox", "tools") for file in (top / room).rglob("*.py")
    ]
    names = {
        name
        for file in sources
        for name in re.findall(r'"(KERNEL_SCIENTIST_[A-Z_]*[A-Z])"', file.read_text())
    }
    assert {"KERNEL_SCIENTIST_HOME", "KERNEL_SCIENTIST_HIP_LIBRARY"} <= names
    load_config(folder=tmp_path, environ=dict.fromkeys(names, "http://localhost:1"))


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_of_many_digits_is_a_sentence(digits: int, tmp_path: Path) -> None:
    number = "9" * digits
    with pytest.raises(UsageError, match="'lanes' must be"):
        load_config(folder=tmp_path, environ={}, sets=[f"lanes={number}"])
    (tmp_path / "kernel-scientist.toml").write_text(f"lanes = {number}\n")
    with pytest.raises(UsageError, match=r"lanes|too many digits"):
        load_config(folder=tmp_path, environ={})


def test_a_configuration_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kernel-scientist.toml")
    with pytest.raises(UsageError, match="not a regular file"):
        load_config(folder=tmp_path, environ={})


def test_a_script_cannot_give_a_truth_value_for_a_number_either() -> None:
    with pytest.raises(UsageError, match="'lanes' must be a whole number"):
        Session("matmul", lanes=True, config=Config())


def test_files_are_kept_by_their_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(environ={}, sets=["prompts=mine", "models.prices_file=prices.toml"])
    assert (config.prompts, config.models.prices_file) == (tmp_path / "mine", tmp_path / "prices.toml")
