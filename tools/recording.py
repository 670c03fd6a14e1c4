"""Recorded search spaces: files of measured kernel configurations, read strictly.

Two layouts, gzipped or not: the cache file of Kernel Tuner (one whose writer was killed, too) and T4.

Covered: what is in the rows (values, times, failures). Not covered: the restrictions of the space, which
neither layout states; a configuration without a row is unknown.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import read_regular

from .evaluation import Verdict
from .statistics import quartiles
from .text import excerpt

__all__ = ["Recording", "Row", "Value", "load_recording"]

Value = int | float | str
Json = dict[str, Any]

_MOST_BYTES = 1 << 28
_GZIP = b"\x1f\x8b"

# By the names that Kernel Tuner gives failures, and by the words of T4's "invalidity". Kernel Tuner's failure
# at run time is a launch that asked for too many resources.
_FAILURES = {
    "invalidconfig": Verdict.INVALID_PLAN,
    "constraints": Verdict.INVALID_PLAN,
    "compilationfailedconfig": Verdict.COMPILE_ERROR,
    "compile": Verdict.COMPILE_ERROR,
    "runtimefailedconfig": Verdict.LAUNCH_ERROR,
    "runtime": Verdict.LAUNCH_ERROR,
    "correctness": Verdict.WRONG_RESULT,
    "timeout": Verdict.TIMEOUT,
}
_MILLISECONDS = {
    "nanoseconds": 1e-6, "ns": 1e-6, "microseconds": 1e-3, "us": 1e-3, "miliseconds": 1.0,
    "milliseconds": 1.0, "ms": 1.0, "seconds": 1e3, "s": 1e3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What is recorded of one configuration: `times_ms` as repeated, or `failure` in the file's own word."""

    verdict: Verdict
    times_ms: tuple[float, ...] = ()
    failure: str = ""

    @property
    def time_ms(self) -> float:
        """The median of the repeats; only of a row that was timed."""
        return quartiles(self.times_ms)[1]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded space. `rows` is keyed by values in the order of `values`; booleans are 0 and 1.

    `values` maps a parameter to what it may be, numbers ascending. `key` is the SHA-256 of the file's text.
    `unfinished` says that its writer did not close it. `device` and `kernel` are the file's own words.
    """

    path: Path
    key: str
    layout: str
    device: str
    kernel: str
    size: tuple[str, ...]
    values: Mapping[str, tuple[Value, ...]]
    rows: Mapping[tuple[Value, ...], Row]
    unfinished: bool = False

    @property
    def timed(self) -> dict[tuple[Value, ...], Row]:
        """The rows with a time, fastest first."""
        passed = {values: row for values, row in self.rows.items() if row.verdict is Verdict.ACCEPTED}
        return dict(sorted(passed.items(), key=lambda item: item[1].time_ms))


def load_recording(path: str | Path) -> Recording:
    """Read a recorded space. UsageError, one sentence, for a file that is none."""
    if not str(path):
        raise UsageError("recorded: names no file; give it as recorded:FILE")
    file = Path(path)
    raw = _read(file)
    document, unfinished = _parse(file, raw)
    if "cache" in document:
        recording = _from_cache(file, document, hashlib.sha256(raw).hexdigest(), unfinished)
    elif "results" in document and not unfinished:
        recording = _from_t4(file, document, hashlib.sha256(raw).hexdigest())
    else:
        raise _fault(file, "has neither 'cache' (Kernel Tuner's cache file) nor 'results' (T4) at its top")
    if not recording.timed:
        raise _fault(file, f"none of its {len(recording.rows)} configurations has a time")
    return recording


def _fault(file: Path, what: str) -> UsageError:
    return UsageError(f"{file}: {what}; give a cache file of Kernel Tuner or a T4 file, gzipped or not")


def _read(file: Path) -> bytes:
    """The file's text as bytes, unpacked."""
    try:
        raw = read_regular(file, _MOST_BYTES)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such recording; check the path") from None
    except OSError as error:
        raise _fault(file, f"cannot be read ({error.strerror})") from None
    if not raw.startswith(_GZIP):
        return raw
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            text = packed.read(_MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise _fault(file, f"its gzip data is damaged ({error})") from None
    if len(text) > _MOST_BYTES:
        raise _fault(file, f"it unpacks to more than {_MOST_BYTES} bytes")
    return text


def _parse(file: Path, raw: bytes) -> tuple[Json, bool]:
    """The top-level object, and whether it had to be closed for a writer that was killed."""
    try:
        text = raw.decode("utf-8-sig").rstrip()
    except UnicodeDecodeError:
        raise _fault(file, "is not UTF-8 text") from None
    try:
        return _object(file, json.loads(text)), False
    except RecursionError:
        raise _fault(file, "is nested too deeply") from None
    except json.JSONDecodeError as error:
        first = error
    except ValueError:
        raise _fault(file, "has a number of thousands of digits") from None
    # A killed writer leaves out the two braces, perhaps after half a row.
    for kept in (text, text[: text.rfind("\n") + 1]):
        try:
            return _object(file, json.loads(kept.rstrip().rstrip(",") + "}}")), True
        except (ValueError, RecursionError):
            continue
    raise _fault(file, f"is not JSON: line {first.lineno}, column {first.colno}: {first.msg}")


def _object(file: Path, document: object) -> Json:
    found = _table(document)
    if found is None:
        raise _fault(file, "is not a JSON object")
    return found


def _table(value: object) -> Json | None:
    return cast(Json, value) if isinstance(value, dict) else None


def _list(value: object) -> list[Any] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


def _from_cache(file: Path, document: Json, key: str, unfinished: bool) -> Recording:
    names = _list(document.get("tune_params_keys"))
    lists, cache = _table(document.get("tune_params")), _table(document["cache"])
    if not names or not all(isinstance(one, str) for one in names):
        raise _fault(file, "'tune_params_keys' is not a list of names")
    if len(set(names)) < len(names):
        raise _fault(file, "'tune_params_keys' names a parameter twice")
    if lists is None or cache is None:
        raise _fault(file, "'tune_params' and 'cache' must be objects")
    objective = document.get("objective", "time")
    objectives = _list(objective) or [objective]
    rows: dict[tuple[Value, ...], Row] = {}
    for label, value in cache.items():
        where, row = f"row '{excerpt(label)}'", _table(value)
        if row is None:
            raise _fault(file, f"{where} is not an object")
        point = _configuration(file, where, names, row)
        _add(file, rows, where, point, _cache_row(file, where, row, objectives))
    values = {name: _listed(file, name, lists) for name in names}
    _check_listed(file, values, rows)
    return Recording(
        path=file,
        key=key,
        layout="Kernel Tuner cache file",
        device=_word(document.get("device_name"), "an unnamed device"),
        kernel=_word(document.get("kernel_name"), file.name),
        size=_size(document.get("problem_size")),
        values=values,
        rows=rows,
        unfinished=unfinished,
    )


def _cache_row(file: Path, where: str, row: Json, objectives: list[Any]) -> Row:
    words = [row.get("__error__"), row.get("time"), *(row.get(str(name)) for name in objectives)]
    failure = next((one for one in words if isinstance(one, str)), None)
    if failure is not None:
        return _failed(failure)
    return _timed(file, where, row.get("times"), row.get("time"), 1.0)


def _from_t4(file: Path, document: Json, key: str) -> Recording:
    results, about = _list(document["results"]), _table(document.get("metadata", {}))
    if results is None or about is None:
        raise _fault(file, "'results' must be a list and 'metadata' an object")
    unit = str(about.get("timeunit", "milliseconds"))
    if unit.lower() not in _MILLISECONDS:
        raise _fault(file, f"its time unit '{excerpt(unit)}' is not known")
    scale = _MILLISECONDS[unit.lower()]
    names: list[str] = []
    rows: dict[tuple[Value, ...], Row] = {}
    for number, value in enumerate(results, start=1):
        where, row = f"result {number}", _table(value) or {}
        chosen = _table(row.get("configuration"))
        if not chosen:
            raise _fault(file, f"{where} has no configuration")
        names = names or list(chosen)
        if set(chosen) != set(names):
            raise _fault(file, f"{where} has other parameters than the first")
        point = _configuration(file, where, names, chosen)
        _add(file, rows, where, point, _t4_row(file, where, row, scale))
    columns = zip(*rows, strict=True)
    return Recording(
        path=file,
        key=key,
        layout="T4 file",
        device=_word(about.get("device_name", about.get("device")), "an unnamed device"),
        kernel=_word(about.get("kernel_name"), file.name),
        size=_size(about.get("problem_size")),
        values={name: _ordered(column) for name, column in zip(names, columns, strict=True)},
        rows=rows,
    )


def _t4_row(file: Path, where: str, row: Json, scale: float) -> Row:
    validity = row.get("invalidity", "correct")
    if validity != "correct":
        return _failed(str(validity))
    runtimes = (_table(row.get("times")) or {}).get("runtimes")
    measured = [_table(one) or {} for one in _list(row.get("measurements")) or []]
    value = next((one.get("value") for one in measured if one.get("name") == "time"), None)
    return _failed(value) if isinstance(value, str) else _timed(file, where, runtimes, value, scale)


def _failed(word: str) -> Row:
    return Row(_FAILURES.get(word.lower(), Verdict.CRASHED), failure=excerpt(word))


def _timed(file: Path, where: str, repeats: object, single: object, scale: float) -> Row:
    """A row of its repeats, else of its one time; a time that is not finite is a failure."""
    taken = _list(repeats) or [single]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in taken):
        raise _fault(file, f"{where} has no time, and no failure either")
    times = tuple(_float(one) * scale for one in taken)
    if not all(math.isfinite(one) for one in times):
        return Row(Verdict.CRASHED, failure="a time that is not finite")
    if min(times) <= 0:
        raise _fault(file, f"{where} has a time of {min(times):g} ms")
    return Row(Verdict.ACCEPTED, times)


def _configuration(file: Path, where: str, names: Iterable[str], row: Json) -> tuple[Value, ...]:
    missing = [name for name in names if name not in row]
    if missing:
        raise _fault(file, f"{where} lacks the parameter '{excerpt(missing[0])}'")
    return tuple(_value(file, where, row[name]) for name in names)


def _value(file: Path, where: str, value: object) -> Value:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(_float(value))):
        return value
    raise _fault(file, f"{where} has a value that is neither a number nor a word")


def _float(number: float) -> float:
    """`number` as a float; an integer beyond all of them is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _add(
    file: Path, rows: dict[tuple[Value, ...], Row], where: str, point: tuple[Value, ...], row: Row
) -> None:
    if point in rows:
        raise _fault(file, f"{where} records a configuration that an earlier row has")
    rows[point] = row


def _listed(file: Path, name: str, lists: Json) -> tuple[Value, ...]:
    where = f"'tune_params.{excerpt(name)}'"
    given = _list(lists.get(name))
    if not given:
        raise _fault(file, f"{where} is not a list of values")
    return _ordered(_value(file, where, one) for one in given)


def _check_listed(
    file: Path, values: Mapping[str, tuple[Value, ...]], rows: Mapping[tuple[Value, ...], Row]
) -> None:
    known = [set(one) for one in values.values()]
    for point in rows:
        for name, among, value in zip(values, known, point, strict=True):
            if value not in among:
                text = f"a row has {excerpt(name)} = {excerpt(str(value))}, which 'tune_params' does not list"
                raise _fault(file, text)


def _ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each once: numbers ascending, words in the order met."""
    distinct = list(dict.fromkeys(values))
    if all(isinstance(one, int | float) for one in distinct):
        return tuple(sorted(distinct, key=float))
    return tuple(distinct)


def _size(given: object) -> tuple[str, ...]:
    parts = _list(given) or ([] if given is None else [given])
    return tuple(excerpt(str(one)) for one in parts)


def _word(given: object, instead: str) -> str:
    text = excerpt(" ".join(str(given).split())) if given is not None else ""
    return re.sub(r"\s+", " ", text) or instead
