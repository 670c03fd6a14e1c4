"""Runs a command and turns whatever it raises into one sentence and an exit code.

0 done · 1 internal error · 2 usage, configuration or a user's file · 3 nothing beat the baseline ·
4 stopped by a limit · 5 environment unusable · 6 some items failed, or the kernel was not accepted ·
130 Ctrl-C.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from kernel_scientist.sandbox.errors import InternalError, KernelScientistError
from kernel_scientist.sandbox.files import explain_os_error

from .app import app
from .places import recorded_in, resume_command
from .text import clean, one_line

__all__ = ["run_command"]

INTERRUPTED = 130
_LONGEST = 3000
_NO_NUMBER = re.compile(r"is not a valid integer(?: range)?")


def run_command(arguments: Sequence[str] | None) -> int:
    """Run the command line on `arguments` (default: ``sys.argv[1:]``); never raises."""
    _open_standard_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = _wants_json(given)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _invoke(given, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; the interpreter's own flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _open_standard_streams() -> None:
    """Put the null device where a standard stream was closed: no file may get its number."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open until the process ends


def _invoke(arguments: list[str], as_json: bool) -> int:
    try:
        code = app.main(args=arguments, prog_name="kernel-scientist", standalone_mode=False)
    except KernelScientistError as error:
        return _report(str(error), type(error).__name__, error.exit_code, as_json, recorded_in(error))
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return _report("A command is missing.", "UsageError", 2, as_json)
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _report(_usage_sentence(error), "UsageError", 2, as_json)
    except (KeyboardInterrupt, click.Abort) as error:
        return _report("Interrupted by Ctrl-C.", "Interrupted", INTERRUPTED, as_json, recorded_in(error))
    except BrokenPipeError:
        raise
    except SystemExit:
        # Only click raises it here, for a reader that has gone.
        raise BrokenPipeError from None
    except OSError as error:
        fault = explain_os_error(error, "use a file")
        return _report(str(fault), type(fault).__name__, fault.exit_code, as_json, recorded_in(error))
    except Exception as error:
        return _report_bug(error, as_json)
    return code if isinstance(code, int) else 0


def _wants_json(arguments: Sequence[str]) -> bool:
    before_operands = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before_operands


def _usage_sentence(error: click.ClickException) -> str:
    message = _NO_NUMBER.sub("is not a whole number", error.format_message().rstrip("."))
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return f"{message}."
    return f"{message}; see '{context.command_path} --help'."


def _report(message: str, kind: str, code: int, as_json: bool, run: Path | None = None) -> int:
    """Say what ended the command, and where the record is when it was a session."""
    # It may quote a file or a server's answer.
    sentence = one_line(message, _LONGEST)
    if as_json:
        record = {} if run is None else {"run": run.name, "path": str(run), "resume": resume_command(run)}
        print(json.dumps({"error": {"type": kind, "message": sentence, "exit_code": code, **record}}))
    else:
        record_line = ""
        if run is not None:
            record_line = (
                f" The record of the run is in {one_line(str(run))}; go on with '{resume_command(run)}'."
            )
        print(f"kernel-scientist: {sentence}{record_line}", file=sys.stderr)
    return code


def _report_bug(error: Exception, as_json: bool) -> int:
    """Name the bug in a sentence; the traceback follows on stderr when KERNEL_SCIENTIST_DEBUG is set."""
    if os.environ.get("KERNEL_SCIENTIST_DEBUG"):
        print(clean("".join(traceback.format_exception(error))), file=sys.stderr)
        hint = "the traceback is above"
    else:
        hint = "set KERNEL_SCIENTIST_DEBUG=1 for the traceback, and please report it"
    message = f"Internal error, {type(error).__name__}: {one_line(str(error)) or 'no message'} ({hint})."
    return _report(message, InternalError.__name__, InternalError.exit_code, as_json, recorded_in(error))
