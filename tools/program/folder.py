"""A new problem folder, from a program or from the template: written whole or not at all."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained, read_regular

from .proposal import propose

__all__ = ["new_problem"]

_TEMPLATE = Path(__file__).parent / "template"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_MOST_BYTES = 2**20


def new_problem(name: str, parent: Path, program: Path | None = None) -> Path:
    """Make the folder `name` under `parent`, from a HIP program where one is given; the folder's path.

    Raises UsageError for a name that is none, a folder that is there, or a program that cannot be read.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a problem; use letters, digits, _ and -, a letter or digit first."
        )
    folder = parent / name
    if folder.exists():
        raise UsageError(f"{folder} is already there; choose another name or --output.")
    files = _from_program(program, name) if program is not None else _from_template(name)
    with explained("make the problem folder", folder):
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=parent))
        try:
            for file, text in files.items():
                (temporary / file).write_text(text, encoding="utf-8")
            temporary.chmod(0o755)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return folder


def _from_program(program: Path, name: str) -> dict[str, str]:
    with explained("read the program", program):
        source = read_regular(program, _MOST_BYTES)
    try:
        source.decode()
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1
        raise UsageError(f"{program}, line {line}: is not UTF-8; save the file as UTF-8") from None
    return propose(source.replace(b"\r\n", b"\n"), program, name).files


def _from_template(name: str) -> dict[str, str]:
    files = {
        path.name: path.read_text(encoding="utf-8") for path in sorted(_TEMPLATE.iterdir()) if path.is_file()
    }
    return {file: text.replace("NAME_OF_THE_PROBLEM", name) for file, text in files.items()}
