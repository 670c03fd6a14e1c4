"""The key of an endpoint: with the service it belongs to, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import events as ev
from kernel_scientist.sandbox.errors import UsageError

from .conftest import Hold
from .openai_server import KEY, Answer, Refuse, Say, serve
from .test_openai import _request, config, good

SESSION = """
import sys
from kernel_scientist.agents import Session
from kernel_scientist.tools.settings import JudgeSettings, TierSettings

class NoBooks:
    def search(self, query, *, limit=8):
        return []

quick = JudgeSettings(
    screen=TierSettings(3, 3, 0.3, 1), confirm=TierSettings(6, 6, 1.0, 4), batch_s=0.005, held_out_shapes=1
)
result = Session(
    "matmul", target="cpu", model="good-model", generations=1, experiments=1, judge=quick, knowledge=NoBooks()
).run()
print(result.stop_reason)
sys.exit(result.exit_code)
"""


class Watch:
    """Looks at the command line and the environment of every process that descends from one."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.seen: set[str] = set()
        self.leaks: set[str] = set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(10)

    def _look(self) -> None:
        while not self._done.wait(0.02):
            for pid in _descendants(self._root):
                command, environment = (_read(pid, name) for name in ("cmdline", "environ"))
                words = command.replace(b"\0", b" ").decode("utf-8", "replace")
                # Between fork and exec a child still shows what the session itself was started with.
                if not words or words == self._own():
                    continue
                self.seen.add(words.split()[0].rpartition("/")[2])
                if KEY.encode() in command + environment:
                    self.leaks.add(words)

    def _own(self) -> str:
        return _read(self._root, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            stat = _read(int(folder.name), "stat").rpartition(b")")[2].split()
            if len(stat) > 1:
                parents[int(folder.name)] = int(stat[1])
    found, new = set(), {root}
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in new} - found
    return sorted(found - {root})


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_key_is_in_no_process_but_the_session_s_own_and_in_no_file(tmp_path: Path) -> None:
    """A real session in a process of its own, on the CPU device, watched from outside while it runs."""

    asked: set[str] = set()

    def leaky(body: dict[str, Any]) -> Answer:
        agent = str(_request(body)["request"])
        if agent not in asked:
            asked.add(agent)
            return Refuse(500, f"no route for 'Authorization: Bearer {KEY}'")
        say = good(body)
        return Say(f"The key is {KEY}. {say.text}", say.calls) if say.text else say

    with serve(leaky) as server:
        # The name is the user's choice; other tools' keys have names that nobody here knows.
        environment = {**os.environ, "LAB_KEY": KEY, "OTHER_TOOL_TOKEN": KEY, "OPENAI_BASE_URL": server.url}
        environment |= {
            "KERNEL_SCIENTIST_MODELS__API_KEY_ENV": "LAB_KEY",
            "KERNEL_SCIENTIST_MODELS__RETRY_WAIT_S": "0.01",
        }
        command = [sys.executable, "-P", "-c", SESSION]
        with (
            subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process,
            Watch(process.pid) as watch,
        ):
            try:
                out, err = process.communicate(timeout=280)
            finally:
                process.kill()

    assert process.returncode in (0, 3), err.decode()
    assert KEY.encode() not in out + err
    assert watch.seen, "workers and compilers were at work while we looked"
    assert not watch.leaks
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert asked == {"select", "research", "code", "benchmark"}
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 5
    for file in files:
        assert KEY.encode() not in file.read_bytes(), file
    # What the model said of the key goes into no further prompt either.
    assert KEY not in str(server.requests)


def test_the_key_is_in_no_event_that_an_observer_sees(hold: Hold) -> None:
    def leaky(body: dict[str, Any]) -> Any:
        if _request(body)["request"] == "code" and len(body["messages"]) == 2:
            return Refuse(500, f"internal error near 'Authorization: Bearer {KEY}'")
        say = good(body)
        calls = tuple((name, arguments.replace("register", KEY)) for name, arguments in say.calls)
        return Say(f"{KEY} {say.text}" if say.text else "", calls, message={"reasoning": f"my key: {KEY}"})

    with serve(leaky) as server:
        held = hold(config=config(server.url, tries=2), generations=1, experiments=1)
    shown = "".join(event.model_dump_json() for event in held.events)
    assert KEY not in shown and "[key]" in shown
    assert any("[key]" in (call.error or "") for call in held.of(ev.ModelCall))
    assert KEY not in str(server.requests)


@pytest.mark.parametrize("status", [401, 403, 404, 429])
def test_the_key_is_in_no_sentence(hold: Hold, tmp_path: Path, status: int) -> None:
    refusal = Refuse(status, f"Incorrect API key provided: {KEY}", "insufficient_quota")
    with serve(lambda body: refusal) as server, pytest.raises(UsageError) as error:
        hold(config=config(server.url))
    assert KEY not in str(error.value) and "[key]" in str(error.value)
    chain: BaseException | None = error.value
    while chain is not None:
        assert KEY not in f"{chain!r} {chain.args}"
        chain = chain.__context__
    for file in (tmp_path / "runs").rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()
