"""Runs a command and turns whatever it raises into one sentence and an exit code.

0 done · 1 internal error · 2 usage, configuration or a user's file · 3 nothing beat the baseline ·
4 stopped by a limit · 5 environment unusable · 6 some items failed, or the kernel was not accepted ·
130 Ctrl-C.
"""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Sequence

import click

from kernel_scientist.sandbox.errors import InternalError, KernelScientistError

from .app import app
from .text import clean, one_line

__all__ = ["run_command"]

INTERRUPTED = 130


def run_command(arguments: Sequence[str] | None) -> int:
    """Run the command line on `arguments` (default: ``sys.argv[1:]``); never raises."""
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


def _invoke(arguments: list[str], as_json: bool) -> int:
    try:
        code = app.main(args=arguments, prog_name="kernel-scientist", standalone_mode=False)
    except KernelScientistError as error:
        return _report(str(error), type(error).__name__, error.exit_code, as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            return _report("A command is missing.", "UsageError", 2, as_json)
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.ClickException as error:
        return _report(_usage_sentence(error), "UsageError", 2, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _report("Interrupted by Ctrl-C.", "Interrupted", INTERRUPTED, as_json)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _report(_os_sentence(error), "UsageError", 2, as_json)
    except Exception as error:
        return _report_bug(error, as_json)
    return code if isinstance(code, int) else 0


def _wants_json(arguments: Sequence[str]) -> bool:
    before_operands = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before_operands


def _usage_sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return f"{message}."
    return f"{message}; see '{context.command_path} --help'."


def _os_sentence(error: OSError) -> str:
    where = f" '{error.filename}'" if error.filename else ""
    what = error.strerror or str(error)
    return f"Cannot use{where or ' a file'}: {what}; check that the path exists and may be used."


def _report(message: str, kind: str, code: int, as_json: bool) -> int:
    sentence = one_line(message)
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": sentence, "exit_code": code}}))
    else:
        print(f"kernel-scientist: {sentence}", file=sys.stderr)
    return code


def _report_bug(error: Exception, as_json: bool) -> int:
    """Name the bug in a sentence; the traceback follows on stderr when KERNEL_SCIENTIST_DEBUG is set."""
    if os.environ.get("KERNEL_SCIENTIST_DEBUG"):
        print(clean("".join(traceback.format_exception(error))), file=sys.stderr)
        hint = "the traceback is above"
    else:
        hint = "set KERNEL_SCIENTIST_DEBUG=1 for the traceback, and please report it"
    message = f"Internal error, {type(error).__name__}: {one_line(str(error)) or 'no message'} ({hint})."
    return _report(message, InternalError.__name__, InternalError.exit_code, as_json)
