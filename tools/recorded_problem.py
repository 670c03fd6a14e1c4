"""The problem made from a recorded search space: its parameters as constants, and nothing to compute.

The folder lies in the cache and is written again whenever it is not as it should be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import atomic_write, cache_home, explained

from .errors import PlanError
from .kernel import Kernel
from .plan import ConstantValue, is_constant_name, toml_literal
from .recording import Recording, Value, load_recording

__all__ = [
    "Parameter",
    "parameters_of",
    "recorded_folder",
    "recorded_kernel",
    "shape_of",
    "write_recorded_problem",
]

KERNEL_NAME = "recorded.hip"

_REFERENCE = '''"""A recorded search space has times and no results: there is nothing to compute here."""


def inputs(rng, distribution, **shape):
    raise NotImplementedError("this problem can only be judged by the target recorded:FILE it was made from")


def reference(**inputs):
    raise NotImplementedError("this problem can only be judged by the target recorded:FILE it was made from")
'''


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as a constant of the plan. With `coded`, the constant is a value's place in `values`."""

    name: str
    constant: str
    values: tuple[Value, ...]
    coded: bool

    def code(self, value: Value) -> ConstantValue:
        """What the constant is for `value`."""
        return self.values.index(value) if self.coded else value

    def value(self, constant: ConstantValue) -> Value | None:
        """The value that the constant stands for; ``None`` when it stands for none."""
        if not self.coded:
            return constant if constant in self.values else None
        known = isinstance(constant, int) and 0 <= constant < len(self.values)
        return self.values[constant] if known and isinstance(constant, int) else None


def parameters_of(recording: Recording) -> tuple[Parameter, ...]:
    """The recording's parameters under names that a plan allows, each another; words are coded as numbers."""
    taken = {*shape_of(recording), "result"}
    made: list[Parameter] = []
    for name, values in recording.values.items():
        constant = re.sub(r"\W", "_", name, flags=re.ASCII)
        constant = constant if is_constant_name(constant) else f"p_{constant}"
        while constant in taken:
            constant += "_"
        taken.add(constant)
        coded = any(isinstance(value, str) for value in values)
        made.append(Parameter(name, constant, values, coded))
    return tuple(made)


def recorded_folder(file: str | Path) -> Path:
    """The problem folder of the recording in `file`. UsageError when that is none."""
    return write_recorded_problem(load_recording(file))


def write_recorded_problem(recording: Recording) -> Path:
    """The folder of the recording's problem, written where it is not there already."""
    name = re.sub(r"[^\w.-]", "_", recording.path.name, flags=re.ASCII)
    name = re.sub(r"(\.json)?(\.gz)?$", "", name) or "recording"
    folder = cache_home() / "recorded" / recording.key[:16] / name
    files = {
        KERNEL_NAME: recorded_kernel(recording),
        "reference.py": _REFERENCE,
        "problem.toml": _problem_text(recording),
    }
    with explained("write the problem of a recording", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for part, text in files.items():
            if not (folder / part).is_file() or (folder / part).read_bytes() != text.encode():
                atomic_write(folder / part, text)
    return folder


def recorded_kernel(recording: Recording) -> str:
    """The kernel file: the configuration of median time, and every recorded value as worth trying.

    UsageError when the recording has more parameters or values than a plan can hold.
    """
    timed = recording.timed
    middle = list(timed)[len(timed) // 2]
    parameters = parameters_of(recording)
    lines = ["/* plan", "[constants]"]
    lines += [
        f"{one.constant} = {toml_literal(one.code(value))}"
        for one, value in zip(parameters, middle, strict=True)
    ]
    lines += ["[tune]"]
    for one in parameters:
        listed = ", ".join(toml_literal(one.code(value)) for value in one.values)
        lines.append(f"{one.constant} = [{listed}]")
    lines += ["[[launch]]", 'kernel = "recorded"', "grid = 1", "block = 1", 'args = ["result"]', "*/"]
    lines += [f"// {line}" for line in _about(recording)]
    lines += [f"// {line}" for one in parameters for line in _legend(one)]
    body = "__global__ void recorded(int* result) {\n    *result = 0;\n}\n"
    text = "\n".join([*lines, "#include <hip/hip_runtime.h>", "", body])
    try:
        Kernel.parse(text)
    except PlanError as error:
        raise UsageError(f"{recording.path}: cannot be searched here: {error.message}") from None
    return text


def _about(recording: Recording) -> list[str]:
    return [
        f"Stands for the kernel {_plain(recording.kernel)}, whose code a recording does not hold.",
        f"The times are those that were recorded on {_plain(recording.device)}; none is taken here.",
        "Only the constants can be changed: each set of them names a recorded configuration.",
    ]


def _legend(parameter: Parameter) -> list[str]:
    """What a constant stands for, where its name or its numbers do not say it."""
    if parameter.coded:
        words = ", ".join(f"{place} = {_plain(str(value))}" for place, value in enumerate(parameter.values))
        return [f"{parameter.constant}: {_plain(parameter.name)}, {words}"]
    if parameter.constant != parameter.name:
        return [f"{parameter.constant}: {_plain(parameter.name)}"]
    return []


def _plain(text: str) -> str:
    """Text of the file for a comment: no end of line, and none that joins the next."""
    return "".join(one if one.isprintable() and one != "\\" else "?" for one in text)


def shape_of(recording: Recording) -> dict[str, int]:
    """The one shape of the recording's problem; of extent 1 where the file states no numbers as its size."""
    sizes = [int(one) for one in recording.size if one.isascii() and one.isdigit() and 0 < int(one) < 2**31]
    if not sizes or len(sizes) < len(recording.size):
        return {"recorded_size": 1}
    return {f"size_{place}": size for place, size in enumerate(sizes)}


def _problem_text(recording: Recording) -> str:
    dimensions = shape_of(recording)
    shape = ", ".join(f"{name} = {size}" for name, size in dimensions.items())
    domain = "\n".join(f"{name} = {{ min = {size}, max = {size} }}" for name, size in dimensions.items())
    kernel, device = _plain(recording.kernel), _plain(recording.device)
    title = f"Recorded search space of {kernel} on {device}"
    return f"""title = {toml_literal(title)}
description = {toml_literal(" ".join(_description(recording)))}
kernels = ["{KERNEL_NAME}"]
distributions = ["none"]

[inputs]

[outputs]
result = {{ dtype = "int32", shape = ["1"] }}

[domain]
{domain}

[tolerance]

[speed_of_light]
flops = 0
bytes = 0
arithmetic = "float32"

[shapes.recorded]
tests = [{{ {shape} }}]
benchmarks = [{{ {shape} }}]
"""


def _description(recording: Recording) -> list[str]:
    failed = len(recording.rows) - len(recording.timed)
    size = f" on a problem of size {_plain(' x '.join(recording.size))}" if recording.size else ""
    count = f"{len(recording.rows)} configurations of the kernel {_plain(recording.kernel)}"
    return [
        f"A {recording.layout} with {count}{size}, measured on {_plain(recording.device)}; "
        f"{failed} of them failed.",
        "Times are played back from the file: nothing is compiled or run here, and only the plan's constants "
        "can be changed. A configuration that was not recorded is an invalid plan.",
    ]
