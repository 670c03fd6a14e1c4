"""``devices LIBRARY`` prints what there is; ``batch LIBRARY CHANNEL_FD REPLY_FD`` runs one batch."""

from __future__ import annotations

import json
import sys
from typing import Any

from .hip import Hip, HipError

__all__ = ["MARK", "describe_error", "main"]

# Libraries may print as well; the answer is the line that begins so.
MARK = "kernel-scientist-devices "


def describe_error(error: HipError) -> dict[str, Any]:
    return {"call": error.call, "code": error.code, "name": error.name, "text": error.text}


def main(arguments: list[str]) -> int:
    command, library, *rest = arguments
    if command == "batch":
        from .batch import serve

        return serve(library, *map(int, rest))
    answer: dict[str, Any]
    try:
        from .facts import device_facts

        answer = device_facts(Hip(library))
    except OSError as error:
        answer = {"unloadable": str(error)}
    except HipError as error:
        answer = {"error": describe_error(error)}
    print(MARK + json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
