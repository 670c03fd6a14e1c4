"""What a model costs and reads: from the configuration, the user's own file, or the shipped table.

The shipped table (``prices.toml``) holds for the services it names, each known by its host: the same name
behind another endpoint is another offer, whose price is not known. Every price carries its source and date.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.files import data_home, read_regular

from ..config import ModelsConfig, Price

__all__ = ["FILE_NAME", "Offer", "find_offer"]

FILE_NAME = "prices.toml"
_MOST_BYTES = 1 << 24
"""The shipped table, and the user's own in the data folder."""


@dataclass(frozen=True, slots=True)
class Offer:
    """`price` is ``None`` where it is not known, `context` where the window is not."""

    price: Price | None = None
    context: int | None = None


class _Row(Price):
    context: int | None = None


class _Service(BaseModel):
    model_config = ConfigDict(extra="forbid")

    host: str
    source: str = ""
    date: str = ""
    models: dict[str, _Row]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    services: list[_Service] = []


def find_offer(name: str, url: str, config: ModelsConfig) -> Offer:
    """What is known of model `name` at the endpoint `url`. Raises `UsageError` on a bad file of prices."""
    host = urlsplit(url).hostname or ""
    rows = [_row(table, name, host) for table in _tables(config)]
    found = next((row for row in rows if row is not None), None)
    price = config.prices.get(name) or (None if found is None else _price(found))
    return Offer(price, None if found is None else found.context)


def _price(row: _Row) -> Price:
    return Price.model_validate(row.model_dump(exclude={"context"}))


def _row(table: _Table, name: str, host: str) -> _Row | None:
    """The row of a model; a dated snapshot of it costs what the model costs."""
    for service in table.services:
        if service.host == host:
            row = service.models.get(name) or service.models.get(_undated(name))
            if row is not None:
                known = {"source": row.source or service.source, "date": row.date or service.date}
                return row.model_copy(update=known)
    return None


def _undated(name: str) -> str:
    parts = name.rsplit("-", 3)
    dated = len(parts) == 4 and [len(one) for one in parts[1:]] == [4, 2, 2]
    return parts[0] if dated and "".join(parts[1:]).isdigit() else name


def _tables(config: ModelsConfig) -> list[_Table]:
    own = config.prices_file
    if own is None:
        try:
            own = data_home() / FILE_NAME
        except UnusableEnvironment:
            return [_shipped()]
        if not own.is_file():
            return [_shipped()]
    return [_read_file(own), _shipped()]


def _shipped() -> _Table:
    file = resources.files("kernel_scientist.agents.models") / FILE_NAME
    return _Table.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


def _read_file(path: Path) -> _Table:
    try:
        values: Mapping[str, object] = tomllib.loads(read_regular(path, _MOST_BYTES).decode("utf-8-sig"))
        return _Table.model_validate(values)
    except OSError as error:
        raise UsageError(f"{path}: the price table cannot be read ({error.strerror}).") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{path}: in the price table, {place}: {first['msg']}; see docs/models.md for its form."
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: the price table is not TOML: {error}.") from None
