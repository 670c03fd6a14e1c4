"""Which cage is chosen, and what a command inside of each can reach."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_scientist.sandbox import cage as cage_module
from kernel_scientist.sandbox.cage import Cage, select_cage, wrap_command
from kernel_scientist.sandbox.errors import SandboxError, UsageError
from kernel_scientist.sandbox.processes import Completed, run

SYSTEM = [path for path in map(Path, ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")) if path.exists()]
PYTHON = [Path(sys.base_prefix), Path(os.path.realpath(sys.executable)).parent.parent]


@pytest.fixture(params=["bubblewrap", "landlock"])
def caged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cage:
    monkeypatch.setenv("KERNEL_SCIENTIST_CAGE", request.param)
    try:
        return select_cage()
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A folder to work in, and a secret beside it."""
    work, secret = tmp_path / "work", tmp_path / "secret"
    work.mkdir()
    secret.write_text("the secret")
    yield work, secret


def inside(cage: Cage, program: str, work: Path) -> Completed:
    readable = [*SYSTEM, *PYTHON]
    argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", program]
    return run(cage.wrap_command(argv, readable=readable, writable=[work]), cwd=work, timeout_s=30)


def test_a_caged_command_runs_and_writes_where_it_may(caged: Cage, places: tuple[Path, Path]) -> None:
    work, _ = places
    completed = inside(caged, f"open('{work}/made', 'w').write('x'); print('hello')", work)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == b"hello\n"
    assert (work / "made").read_text() == "x"


def test_files_that_were_not_named_cannot_be_read_or_written(caged: Cage, places: tuple[Path, Path]) -> None:
    work, secret = places
    assert inside(caged, f"print(open('{secret}').read())", work).returncode != 0
    assert inside(caged, f"open('{secret.parent}/new', 'w').write('x')", work).returncode != 0
    assert not (secret.parent / "new").exists()
    assert inside(caged, "print(open('/etc/passwd').read())", work).returncode != 0


def test_readable_files_cannot_be_written(caged: Cage, places: tuple[Path, Path]) -> None:
    work, _ = places
    assert inside(caged, "open('/usr/made-by-a-test', 'w')", work).returncode != 0


def test_no_connection_can_be_made(caged: Cage, places: tuple[Path, Path]) -> None:
    work, _ = places
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        assert inside(caged, program, work).returncode != 0
        udp = f"import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
        assert (
            inside(caged, udp, work).returncode != 0 or caged.name == "bubblewrap"
        )  # its loopback is its own


def test_bubblewrap_hides_other_processes_and_the_environment(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CAGE", "bubblewrap")
    monkeypatch.setenv("SECRET_KEY", "hush")
    try:
        cage = select_cage()
    except SandboxError as error:
        pytest.skip(str(error))
    work, _ = places
    program = "import os; print(os.getpid() < 10, 'SECRET_KEY' in os.environ, os.path.exists('/home'))"
    assert inside(cage, program, work).stdout == b"True False False\n"


def test_other_processes_cannot_be_signalled(caged: Cage, places: tuple[Path, Path]) -> None:
    work, _ = places
    assert inside(caged, f"import os; os.kill({os.getpid()}, 0)", work).returncode != 0


def test_the_cage_is_named_with_its_version(caged: Cage) -> None:
    assert caged.name in ("bubblewrap", "landlock+seccomp")
    assert caged.version


def test_no_cage_is_an_error_that_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_CAGE", raising=False)
    monkeypatch.setattr(cage_module, "_bubblewrap", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(cage_module, "_landlock_version", lambda: 0)
    with pytest.raises(
        SandboxError, match=r"bubblewrap is not installed; this kernel has no landlock.*--no-sandbox"
    ):
        select_cage()
    allowed = select_cage(allow_none=True)
    assert allowed.name == "none"
    assert "not installed" in allowed.detail
    assert wrap_command(["/bin/true"], readable=[], writable=[], cage=allowed) == ["/bin/true"]


def test_the_fallback_says_what_it_stands_in_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_SCIENTIST_CAGE", raising=False)
    monkeypatch.setattr(cage_module, "_bubblewrap", lambda: "bubblewrap: user namespaces are refused")
    try:
        cage = select_cage()
    except SandboxError as error:
        pytest.skip(str(error))
    assert cage.name == "landlock+seccomp"
    assert "user namespaces are refused" in cage.detail


def test_an_unknown_cage_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CAGE", "chroot")
    with pytest.raises(UsageError, match="chroot"):
        select_cage()
