"""A problem's reference.py: the user's own Python, run in this process, and its answers checked.

Covered: a module that does not load, a function that is missing, raises or returns arrays of the
wrong names, shapes or dtypes; each names file and line. Not covered: a reference that computes the
wrong thing, does not come back, or ends this process.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, cast

import numpy as np

from kernel_scientist.sandbox.files import read_regular

from .errors import ProblemError

__all__ = ["Array", "Reference"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_BYTES = 2**22
_LONGEST_MESSAGE = 500


@contextmanager
def _watch_for_interrupt() -> Generator[list[int]]:
    """A list that is empty until a person presses Ctrl-C: code of others may raise KeyboardInterrupt too."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class Reference:
    """The functions of one reference.py, loaded when first called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._module: ModuleType | None = None
        self._limit: Callable[[], AbstractContextManager[object]] | None = None

    def inputs(self, rng: np.random.Generator, distribution: str, shape: Mapping[str, int]) -> Any:
        return self._call("inputs", rng, distribution, **shape)

    def outputs(self, inputs: Mapping[str, Array], scalars: Mapping[str, int | float]) -> Any:
        return self._call("reference", **inputs, **self._wanted("reference", scalars))

    def magnitudes(self, inputs: Mapping[str, Array], scalars: Mapping[str, int | float]) -> Any:
        return self._call("magnitude", **inputs, **self._wanted("magnitude", scalars))

    def line_of(self, name: str) -> int | None:
        """The line on which function `name` is defined."""
        line: int = self._function(name).__code__.co_firstlineno
        return line

    def _load(self) -> ModuleType:
        if self._module is not None:
            return self._module
        module = ModuleType(f"kernel_scientist_reference_{hash(self.path) & 0xFFFFFFFF:08x}")
        module.__file__ = str(self.path)
        try:
            # Compiled here rather than imported, so that nothing is written beside the user's files.
            code = compile(read_regular(self.path, _MOST_BYTES), str(self.path), "exec")
        except FileNotFoundError:
            raise ProblemError(
                "there is no such file; write it beside problem.toml", path=self.path
            ) from None
        except OSError as error:
            raise ProblemError(f"cannot be read ({error.strerror})", path=self.path) from None
        except SyntaxError as error:
            raise ProblemError(f"is not Python: {error.msg}", path=self.path, line=error.lineno) from None
        except ValueError as error:
            raise ProblemError(f"is not Python: {error}", path=self.path) from None
        # Dataclasses and pickle look their module up.
        sys.modules[module.__name__] = module
        try:
            self._run("loading it", lambda: exec(code, module.__dict__))
        except BaseException:
            del sys.modules[module.__name__]
            raise
        self._module = module
        return module

    def _function(self, name: str) -> Any:
        function = getattr(self._load(), name, None)
        if not inspect.isfunction(function):
            raise ProblemError(f"must define the function '{name}'", path=self.path)
        return function

    def _wanted(self, name: str, scalars: Mapping[str, int | float]) -> dict[str, int | float]:
        """Those dimensions and scalars that the function names as parameters."""
        parameters = inspect.signature(self._function(name)).parameters
        return {key: value for key, value in scalars.items() if key in parameters}

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        function: Callable[..., Any] = self._function(name)
        with self._few_threads():
            return self._run(f"{name}()", partial(function, *args, **kwargs))

    def _run(self, what: str, call: Callable[[], Any]) -> Any:
        """What the user's code returns; ProblemError for whatever it raises, Ctrl-C excepted."""
        with _watch_for_interrupt() as pressed:
            try:
                # stdout belongs to results; what a reference prints is for people.
                with redirect_stdout(sys.stderr):
                    return call()
            except BaseException as error:
                if pressed and isinstance(error, KeyboardInterrupt):
                    raise
                raise self._raised(what, error) from error

    def _few_threads(self) -> AbstractContextManager[object]:
        """Half of the cores for BLAS: its threads wait busily, and the judge has what timing leaves."""
        if self._limit is None:
            # It finds the libraries that are loaded by now, the reference's own among them. It has no types.
            controller: Any = import_module("threadpoolctl").ThreadpoolController()
            threads = max(1, len(os.sched_getaffinity(0)) // 2)
            self._limit = partial(controller.limit, limits=threads, user_api="blas")
        return self._limit()

    def _raised(self, what: str, error: BaseException) -> ProblemError:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
        line = lines[-1] if lines else None
        said = " ".join(str(error).split()) or "no message"
        message = f"{what} raised {type(error).__name__}: {said[:_LONGEST_MESSAGE]}"
        return ProblemError(message, path=self.path, line=line)

    def check_names(self, function: str, got: Any, wanted: Iterable[str]) -> Mapping[str, Any]:
        """`got` as a mapping that has exactly the names `wanted`."""
        line = self.line_of(function)
        names = list(wanted)
        if not isinstance(got, dict):
            message = f"{function}() must return a dict of arrays by buffer name, not {type(got).__name__}"
            raise ProblemError(message, path=self.path, line=line)
        arrays = cast("dict[str, Any]", got)
        if set(arrays) != set(names):
            found = ", ".join(sorted(map(str, arrays))) or "none"
            message = f"{function}() must return the arrays {', '.join(names)}, not {found}"
            raise ProblemError(message, path=self.path, line=line)
        return arrays

    def check_array(
        self, function: str, name: str, got: Any, extent: tuple[int, ...], dtype: np.dtype[Any] | None
    ) -> Array:
        """`got` as an array of that extent, and of `dtype` unless that is ``None``."""
        array = np.asarray(got)
        # What NumPy calls the same kind: floats, integers and bools; not complex numbers, text or objects.
        real = np.can_cast(array.dtype, np.float64, "same_kind")
        if array.shape != extent:
            fault = f"of shape {array.shape}, not {extent}"
        elif dtype is not None and array.dtype != dtype:
            fault = f"of {array.dtype}, not {dtype}"
        elif not real:
            fault = f"of {array.dtype}, not of real numbers"
        else:
            return array
        message = f"{function}() returned '{name}' {fault}"
        raise ProblemError(message, path=self.path, line=self.line_of(function))
