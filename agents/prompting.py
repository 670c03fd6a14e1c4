"""The agents' prompts: readable files, a version in each, which a user's folder may replace.

    <!-- version 2 -->
    # System
    what the agent is and how it answers
    # Request
    words round {{request}}, the block that no prompt can do without

``{{left_out}}`` in the Request part becomes a sentence on what did not fit, or nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import read_regular

__all__ = ["PROMPT_FILES", "Prompt", "load_prompts", "parse_prompt"]

PROMPT_FILES = ("selector.md", "researcher.md", "coder.md", "benchmarker.md")

_MAX_BYTES = 200_000
_VERSION = re.compile(r"\s*<!--\s*version\s+(\d{1,6})\s*-->")
_SECTION = re.compile(r"^# (System|Request)[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_KNOWN = ("request", "left_out")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One agent's prompt; `digest` is the SHA-256 of the file's text, `source` where it is from."""

    system: str
    request: str
    version: int
    digest: str
    source: str

    def wording(self, block: str, left_out: str = "") -> str:
        """The user message: the template's words round the request's fenced `block`."""
        values = {"request": block, "left_out": left_out}
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.request).strip() + "\n"


def load_prompts(folder: Path | None = None) -> Mapping[str, Prompt]:
    """The prompt of each agent by its name: files found in `folder` replace the bundled ones.

    Raises `UsageError` for a folder that is none, a file of another name, and a file that is no prompt.
    """
    bundled = resources.files("kernel_scientist.agents") / "prompts"
    texts = {name: ((bundled / name).read_text(encoding="utf-8"), "bundled") for name in PROMPT_FILES}
    if folder is not None:
        texts |= {file.name: (_read(file), str(file)) for file in _files(folder)}
    return {name.removesuffix(".md"): parse_prompt(text, where) for name, (text, where) in texts.items()}


def parse_prompt(text: str, where: str) -> Prompt:
    """Read a prompt file's text. Raises `UsageError` that names `where` and says what is wrong."""
    version = _VERSION.match(text)
    if version is None:
        raise UsageError(f"{where}: does not begin with its version; write <!-- version 1 --> as first line.")
    parts = _SECTION.split(text[version.end() :])
    if [*parts[1::2]] != ["System", "Request"] or parts[0].strip():
        raise UsageError(f"{where}: must have a part '# System', then a part '# Request', and no other.")
    system, request = parts[2].strip(), parts[4].strip()
    if not system:
        raise UsageError(f"{where}: its part '# System' is empty; say there what the agent is to do.")
    for place, allowed in ((system, ()), (request, _KNOWN)):
        unknown = next((one for one in _PLACEHOLDER.findall(place) if one not in allowed), None)
        if unknown is not None:
            raise UsageError(
                f"{where}: '{{{{{unknown[:40]}}}}}' is no placeholder here; there are {{{{request}}}} and "
                "{{left_out}}, in the part '# Request'."
            )
    if _PLACEHOLDER.findall(request).count("request") != 1:
        raise UsageError(
            f"{where}: its part '# Request' must hold {{{{request}}}} exactly once; without it the agent "
            "would not be told what to do."
        )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Prompt(system, request, int(version[1]), digest, where)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"--prompts {folder}: is not a folder; give one with files such as coder.md.")
    try:
        files = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise UsageError(
            f"--prompts {folder}: cannot be read ({error.strerror}); make it readable."
        ) from None
    for file in files:
        if file.name not in PROMPT_FILES:
            near = get_close_matches(file.name, PROMPT_FILES, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else f"prompts are {', '.join(PROMPT_FILES)}."
            raise UsageError(f"{file}: no agent has a prompt of this name; {hint}")
    if not files:
        raise UsageError(f"--prompts {folder}: holds no prompt; put one of {', '.join(PROMPT_FILES)} there.")
    return files


def _read(file: Path) -> str:
    try:
        return read_regular(file, _MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: is not UTF-8; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); make it a readable file.") from None
