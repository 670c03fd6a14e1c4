"""The configuration of a session: defaults, then a file, the environment, ``--set``, and flags.

    kernel-scientist.toml      in the current folder
    KERNEL_SCIENTIST_*         nested with two underscores: KERNEL_SCIENTIST_LIMITS__MAX_TOKENS=100000
    --set models.timeout_s=60  a TOML value, or a bare word for text

An unknown key is an error that names the nearest known one, a bad value one that names where it was set.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import read_regular

from .model_config import (
    AgentModel,
    EmbeddingConfig,
    ModelsConfig,
    Price,
    Table,
    is_endpoint,
    without_secrets,
)
from .telemetry.config import SpansConfig

__all__ = [
    "CONFIG_FILE",
    "AgentModel",
    "Config",
    "EmbeddingConfig",
    "Limits",
    "ModelsConfig",
    "Price",
    "RepairConfig",
    "ResearchConfig",
    "SearchConfig",
    "SpansConfig",
    "is_endpoint",
    "load_config",
]

CONFIG_FILE = "kernel-scientist.toml"
_MOST_BYTES = 1 << 20
_PREFIX = "KERNEL_SCIENTIST_"
_SET = "--set"
# Variables with our prefix that other rooms read; they are not configuration keys.
_OTHER_VARIABLES = frozenset({"HOME", "CAGE", "TOOLCHAIN", "DEBUG", "HIP_LIBRARY", "ARXIV_URL"})
# Where an option is not named after the last part of its key.
_FLAGS = {"limits.max_time_s": "--max-time", "limits.max_cost_usd": "--max-cost", "otel.endpoint": "--otel"}
_BOUNDS = {
    "greater_than_equal": "must be at least {0}",
    "greater_than": "must be above {0}",
    "less_than_equal": "must be at most {0}",
    "less_than": "must be below {0}",
}
# Kinds of the validator's faults, by how they begin.
_DEMANDS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "bool": "must be true or false",
    "string": "must be text",
    "path": "must be a path",
    "dict": "must be a table",
    "model": "must be a table",
    "missing": "is missing",
    "extra": "is not a known key",
}


class Limits(Table):
    """When a session stops early; ``None`` is no limit. The final comparison is not counted."""

    max_time_s: float | None = Field(default=None, gt=0)
    max_evaluations: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)


class RepairConfig(Table):
    """How often a bad answer may be mended: `reply` for one that cannot be read, `build` for a
    candidate that does not compile, launch or end, `result` for one that computes something else."""

    reply: int = Field(default=2, ge=0, le=20)
    build: int = Field(default=3, ge=0, le=20)
    result: int = Field(default=1, ge=0, le=20)


class ResearchConfig(Table):
    """What the Researcher is asked for, and how much literature it may look up."""

    avenues: int = Field(default=10, ge=1, le=50)
    experiments: int = Field(default=5, ge=1, le=20)
    searches: int = Field(default=4, ge=0, le=20)
    passages: int = Field(default=6, ge=0, le=20)


class SearchConfig(Table):
    """How the search moves on.

    `patience` is in how many generations a Base may be built on in vain before a policy takes another.
    `enough_light` is the share of the speed of light from which a run stops, and a shape is left alone.
    `portfolio_gain` is what joining the best kernels on each shape must promise, in percent, to be tried.
    `close_in_meaning` is the cosine from which an experiment counts as a repetition; above 1 none does.
    """

    patience: int = Field(default=3, ge=1, le=1_000)
    enough_light: float = Field(default=0.95, gt=0, le=2)
    portfolio_gain: float = Field(default=3.0, ge=0)
    close_in_meaning: float = Field(default=0.68, gt=0, le=2)
    islands: int = Field(default=3, ge=1, le=100)
    migrate_every: int = Field(default=2, ge=1, le=1_000)


class Config(Table):
    """Everything that shapes a session. `experiments` is how many run in a generation, `lanes` how many
    generations go on side by side. `chroma` is the address of a Chroma server for the vector index, and
    `embedder` the knowledge base's embedding model (``None``: the one it was made with). With `learn` the
    findings are kept as experience when a session ends."""

    target: str = "auto"
    model: str = "offline"
    generations: int = Field(default=4, ge=1, le=100_000)
    experiments: int = Field(default=3, ge=1, le=20)
    policy: str = "paper"
    prompts: Path | None = None
    chroma: str | None = None
    embedder: str | None = None
    lanes: int = Field(default=1, ge=1, le=64)
    runs_dir: Path = Path("runs")
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    allow_no_sandbox: bool = False
    learn: bool = False
    models: ModelsConfig = ModelsConfig()
    limits: Limits = Limits()
    repairs: RepairConfig = RepairConfig()
    research: ResearchConfig = ResearchConfig()
    search: SearchConfig = SearchConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    otel: SpansConfig = SpansConfig()

    @field_validator("target")
    @classmethod
    def _is_found_from_anywhere(cls, value: str) -> str:
        """A recording's file by its whole path: a run may be looked at, and gone on with, from elsewhere."""
        kind, colon, file = value.partition(":")
        return f"{kind}:{Path(file).absolute()}" if colon and kind == "recorded" and file else value

    @field_validator("prompts")
    @classmethod
    def _is_a_whole_path(cls, value: Path | None) -> Path | None:
        """As the target's file."""
        return None if value is None else value.absolute()

    def replaced(self, values: Mapping[str, object]) -> Config:
        """This configuration with top-level keys changed. Raises `UsageError` on a bad value."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        return _validated({**known, **values}, {})


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
    found = _Found()
    file = (folder or Path()) / CONFIG_FILE
    for key, value in _file_entries(file):
        found.put(key, value, str(file))
    for name, text in sorted((os.environ if environ is None else environ).items()):
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in _OTHER_VARIABLES:
            key = name.removeprefix(_PREFIX).lower().replace("__", ".")
            found.put(key, _toml_value(text), f"environment variable {name}")
    for item in sets:
        key, equals, text = item.partition("=")
        if not equals:
            raise UsageError(f"--set {item}: give it as KEY=VALUE, such as --set models.timeout_s=60.")
        found.put(key.strip(), _toml_value(text), _SET)
    for key, flag in (flags or {}).items():
        if flag is not None:
            found.put(key, flag, "")
    return _validated(found.values, found.places)


class _Found:
    """Values as nested tables, and for each dotted key the place that set it last (empty for its flag)."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.places: dict[str, str] = {}

    def put(self, key: str, value: object, where: str) -> None:
        """Set a dotted key, checking every part of it against the model."""
        if isinstance(value, str) and "\0" in value:
            raise UsageError(f"{_at(where)}'{key}' holds a null character; leave it out.")
        parts = key.split(".")
        table: type[BaseModel] = Config
        values = self.values
        for depth, part in enumerate(parts):
            if part not in table.model_fields:
                break
            nested = _table_of(table.model_fields[part].annotation)
            last = depth == len(parts) - 1
            if nested is AgentModel and last and isinstance(value, str):
                self.put(f"{key}.model", value, where)
                return
            if nested is not None and last:
                self._put_table(key, nested, value, where)
                return
            if nested is not None:
                values, table = values.setdefault(part, {}), nested
            elif part == "prices":
                self._put_price(values, parts[depth + 1 :], value, where)
                return
            elif last:
                if part == "api_key" and where == _SET:
                    raise UsageError(
                        f"--set {key}: everybody on this machine can read a command line; set the variable "
                        f"OPENAI_API_KEY instead, or {key} in {CONFIG_FILE}."
                    )
                if part == "base_url" and where == _SET and "@" in str(value):
                    raise UsageError(
                        f"--set {key}: everybody on this machine can read a command line; give an address "
                        f"with a password in the variable OPENAI_BASE_URL, or as {key} in {CONFIG_FILE}."
                    )
                values[part] = value
                self.places[key] = where
                return
            else:
                break
        raise UsageError(f"{_at(where)}there is no configuration key '{key}'; {_nearest(key)}")

    def _put_table(self, key: str, table: type[BaseModel], value: object, where: str) -> None:
        if not isinstance(value, dict):
            names = ", ".join(_known_keys(table, f"{key}."))
            raise UsageError(f"{_at(where)}'{key}' is a table; set one of its keys: {names}.")
        for name, item in cast("dict[str, object]", value).items():
            self.put(f"{key}.{name}", item, where)

    def _put_price(self, values: dict[str, Any], name: list[str], value: object, where: str) -> None:
        # A model's name may hold dots, so what follows is one name.
        entries = {".".join(name): value} if name else value
        if not isinstance(entries, dict):
            raise UsageError(
                f"{_at(where)}'models.prices' is a table; set a model's price, such as "
                "models.prices.NAME={input=1.0, output=4.0}."
            )
        values.setdefault("prices", {}).update(entries)
        self.places["models.prices"] = where


def _validated(values: dict[str, Any], places: Mapping[str, str]) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise UsageError(_bad_value(error.errors()[0], places)) from None


def _bad_value(fault: Any, places: Mapping[str, str]) -> str:
    """Where the value was set, under which name, what is allowed there, and what it is."""
    key = ".".join(str(part) for part in fault["loc"])
    where = next(
        (place for set_key, place in places.items() if f"{key}.".startswith(f"{set_key}.")),
        "configuration key",
    )
    name = f"{_at(where)}'{key}'" if where else _flag(key)
    shown = without_secrets(repr(fault["input"]))
    given = "" if "key" in key else f"; it is {shown if len(shown) <= 80 else shown[:79] + '…'}"
    return f"{name} {_demand(fault)}{given}."


def _at(where: str) -> str:
    return f"{where}: " if where else ""


def _flag(key: str) -> str:
    """The option of the command line that sets a key."""
    return _FLAGS.get(key) or f"--{key.rpartition('.')[2].replace('_', '-')}"


def _demand(fault: Any) -> str:
    """What a value must be, without the validator's own words where they are jargon."""
    kind = str(fault["type"])
    bounds = fault.get("ctx", {})
    for name, words in _BOUNDS.items():
        if kind == name:
            return words.format(*(f"{one:g}" if isinstance(one, float) else one for one in bounds.values()))
    if kind == "literal_error":
        return f"must be one of {bounds['expected']}"
    for start, words in _DEMANDS.items():
        if kind.startswith(start):
            return words
    return str(fault["msg"]).removeprefix("Value error, ")


def _file_entries(file: Path) -> list[tuple[str, Any]]:
    try:
        # Editors of Windows begin UTF-8 with a byte order mark.
        table = tomllib.loads(read_regular(file, _MOST_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        return []
    except IsADirectoryError:
        raise UsageError(f"{file}: is a folder, not a configuration file; rename it.") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); make it readable.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8; save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: is not TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"{file}: is nested too deeply; make it flatter.") from None
    except ValueError:
        raise UsageError(f"{file}: a number has too many digits; write a smaller one.") from None
    return list(_flattened(table, ""))


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        # A price's name may hold dots, so that table is taken whole.
        if isinstance(value, dict) and value and key != "models.prices":
            yield from _flattened(cast("dict[str, Any]", value), f"{key}.")
        else:
            yield key, value


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
    """The hint for an unknown key, with its punctuation: a known one that is near, or those of its table."""
    known = _known_keys()
    prefix, _, last = key.rpartition(".")
    beside = {one.rpartition(".")[2]: one for one in known if one.rpartition(".")[0] == prefix}
    near = get_close_matches(last, list(beside), n=1, cutoff=0.7)
    close = [beside[near[0]]] if near else get_close_matches(key, known, n=1, cutoff=0.75)
    close = close or [one for one in known if one.rpartition(".")[2] == last]
    if close:
        return f"did you mean '{close[0]}'?"
    if beside and prefix:
        return f"the keys of '{prefix}' are {', '.join(beside)}."
    return f"the known keys are {', '.join(known)}."


def _toml_value(text: str) -> Any:
    """`text` read as a TOML value, or as itself where it is not one (so that words need no quotes)."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text
