"""The configuration of a session: defaults, then a file, the environment, ``--set``, and flags.

    kernel-scientist.toml      in the current folder
    KERNEL_SCIENTIST_*         nested with two underscores: KERNEL_SCIENTIST_LIMITS__MAX_TOKENS=100000
    --set models.timeout_s=60  a TOML value, or a bare word for text

An unknown key is an error that names the nearest known one, wherever it stands.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from kernel_scientist.sandbox.errors import UsageError

__all__ = [
    "CONFIG_FILE",
    "Config",
    "Limits",
    "ModelsConfig",
    "Price",
    "RepairConfig",
    "ResearchConfig",
    "load_config",
]

CONFIG_FILE = "kernel-scientist.toml"
_PREFIX = "KERNEL_SCIENTIST_"
# Variables with our prefix that other rooms read; they are not configuration keys.
_OTHER_VARIABLES = frozenset({"HOME", "CAGE", "TOOLCHAIN", "DEBUG"})


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Price(_Table):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Limits(_Table):
    """When a session stops early; ``None`` is no limit. The final comparison is not counted."""

    max_time_s: float | None = Field(default=None, gt=0)
    max_evaluations: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)


class ModelsConfig(_Table):
    """The endpoint and how it is called. `selector` and the others override `model` for one agent.

    The key is read from the variable named by `api_key_env`; `api_key` in a file works too and is
    never written into a run. `context_tokens` is what a prompt may hold.
    """

    base_url: str | None = None
    api_key: SecretStr | None = Field(default=None, exclude=True)
    api_key_env: str = "OPENAI_API_KEY"
    selector: str | None = None
    researcher: str | None = None
    coder: str | None = None
    benchmarker: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    stream: bool = False
    function_calling: bool = True
    timeout_s: float = Field(default=120.0, gt=0)
    tries: int = Field(default=4, ge=1, le=20)
    retry_wait_s: float = Field(default=1.0, ge=0)
    context_tokens: int = Field(default=64_000, ge=4_000)
    prices: dict[str, Price] = {}


class RepairConfig(_Table):
    """How often a bad answer may be mended: `reply` for one that cannot be read, `build` for a
    candidate that does not compile, launch or end, `result` for one that computes something else."""

    reply: int = Field(default=2, ge=0, le=20)
    build: int = Field(default=3, ge=0, le=20)
    result: int = Field(default=1, ge=0, le=20)


class ResearchConfig(_Table):
    """What the Researcher is asked for, and how much literature it may look up."""

    avenues: int = Field(default=10, ge=1, le=50)
    experiments: int = Field(default=5, ge=1, le=20)
    searches: int = Field(default=4, ge=0, le=20)
    passages: int = Field(default=6, ge=0, le=20)


class Config(_Table):
    """Everything that shapes a session. `experiments` is how many run in a generation."""

    target: str = "auto"
    model: str = "offline"
    generations: int = Field(default=4, ge=1, le=100_000)
    experiments: int = Field(default=3, ge=1, le=20)
    runs_dir: Path = Path("runs")
    seed: int | None = None
    allow_no_sandbox: bool = False
    models: ModelsConfig = ModelsConfig()
    limits: Limits = Limits()
    repairs: RepairConfig = RepairConfig()
    research: ResearchConfig = ResearchConfig()

    def replaced(self, values: Mapping[str, object]) -> Config:
        """This configuration with top-level keys changed. Raises `UsageError` on a bad value."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        return _validated({**known, **values})


def load_config(
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    sets: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
) -> Config:
    """Resolve the configuration. `flags` maps dotted keys to values; ``None`` values are skipped.

    Raises `UsageError` naming the place and the key at fault.
    """
    values: dict[str, Any] = {}
    file = (folder or Path()) / CONFIG_FILE
    for key, value in _file_entries(file):
        _put(values, key, value, str(file))
    for name, text in sorted((os.environ if environ is None else environ).items()):
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in _OTHER_VARIABLES:
            key = name.removeprefix(_PREFIX).lower().replace("__", ".")
            _put(values, key, _toml_value(text), f"environment variable {name}")
    for item in sets:
        key, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--set {item}: give it as KEY=VALUE, such as --set models.timeout_s=60.")
        _put(values, key.strip(), _toml_value(text), f"--set {item}")
    for key, flag in (flags or {}).items():
        if flag is not None:
            _put(values, key, flag, f"option for {key}")
    return _validated(values)


def _validated(values: dict[str, Any]) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        given = "" if "key" in key else f"; it is {first['input']!r}"
        raise UsageError(f"Configuration key '{key}': {first['msg'].lower()}{given}.") from None


def _file_entries(file: Path) -> list[tuple[str, Any]]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); make it readable.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8; save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: is not TOML: {error}.") from None
    return list(_flattened(table, ""))


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        # A price's name may hold dots, so that table is taken whole.
        if isinstance(value, dict) and key != "models.prices":
            yield from _flattened(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key, value


def _put(values: dict[str, Any], key: str, value: object, where: str) -> None:
    """Set a dotted key, checking every part of it against the model."""
    parts = key.split(".")
    table: type[BaseModel] = Config
    for depth, part in enumerate(parts):
        if part not in table.model_fields:
            raise UsageError(f"{where}: there is no configuration key '{key}'; {_nearest(key)}.")
        nested = _table_of(table.model_fields[part].annotation)
        if depth == len(parts) - 1:
            if nested is not None and not isinstance(value, (dict, BaseModel)):
                raise UsageError(
                    f"{where}: '{key}' is a table; set one of its keys, such as {_nearest(key)}."
                )
            values[part] = value.model_dump() if isinstance(value, BaseModel) else value
        elif nested is not None:
            values = values.setdefault(part, {})
            table = nested
        elif part == "prices":
            values.setdefault(part, {})[".".join(parts[depth + 1 :])] = value
            return
        else:
            raise UsageError(f"{where}: there is no configuration key '{key}'; {_nearest(key)}.")


def _table_of(annotation: Any) -> type[BaseModel] | None:
    options = [annotation, *get_args(annotation)]
    return next(
        (one for one in options if isinstance(one, type) and issubclass(one, BaseModel) and one is not Price),
        None,
    )


def _known_keys(table: type[BaseModel] = Config, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in table.model_fields.items():
        nested = _table_of(field.annotation)
        keys += _known_keys(nested, f"{prefix}{name}.") if nested else [f"{prefix}{name}"]
    return keys


def _nearest(key: str) -> str:
    known = _known_keys()
    close = get_close_matches(key, known, n=1, cutoff=0.5)
    if not close:
        last = key.rpartition(".")[2]
        close = [one for one in known if one.rpartition(".")[2] == last][:1]
    return f"did you mean '{close[0]}'?" if close else f"known keys: {', '.join(known)}"


def _toml_value(text: str) -> Any:
    """`text` read as a TOML value, or as itself where it is not one (so that words need no quotes)."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text
