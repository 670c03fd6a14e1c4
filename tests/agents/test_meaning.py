"""Which experiments count as the same change: measured on pairs written for it, on both sides of the line."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import LLMMessage

from kernel_scientist.agents import Config
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import Experiment, Hypotheses, Refusal
from kernel_scientist.agents.models.scripted import Reply, ScriptedModel
from kernel_scientist.agents.policies.meaning import (
    CLOSE,
    EmbeddedMeaning,
    rules_apart,
    shared_meaning,
)
from kernel_scientist.agents.policies.repeats import find_repeats
from kernel_scientist.agents.population import Population
from kernel_scientist.agents.requests import Request, ResearchRequest
from kernel_scientist.knowledge import FakeEmbedder
from kernel_scientist.sandbox.errors import UnusableEnvironment

from .conftest import Hold
from .test_policies import BASELINE, add, evaluation

PAIRS: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "data" / "experiments.toml").read_text()
)


def experiment(text: str, strategy: str = "tiling") -> Experiment:
    return Experiment(
        description=text, rubric=("r",), strategy=strategy, uplift_min=0, uplift_max=10, innovation=1
    )


def judged_same(pair: dict[str, Any]) -> bool:
    first, second = pair.get("strategies") or [pair["strategy"]] * 2
    a, b = experiment(pair["a"], first), experiment(pair["b"], second)
    return shared_meaning(CLOSE).nearest(a, [b]) is not None


def test_no_pair_of_different_changes_counts_as_the_same() -> None:
    """A false alarm loses a good idea, so there is none; figures in docs/search.md."""
    assert [pair["a"] for pair in PAIRS["different"] if judged_same(pair)] == []


@pytest.mark.parametrize(("held_out", "least"), [(False, 0.5), (True, 0.7)])
def test_most_repetitions_are_recognised(held_out: bool, least: float) -> None:
    pairs = [pair for pair in PAIRS["same"] if pair.get("held_out", False) == held_out]
    assert sum(map(judged_same, pairs)) / len(pairs) >= least


def test_the_rules_alone_and_the_cosine_alone_would_not_do() -> None:
    meaning = EmbeddedMeaning(shared_meaning()._embedder, 0.0)
    apart = [rules_apart(experiment(p["a"]), experiment(p["b"])) for p in PAIRS["different"]]
    assert any(apart) and not all(apart)
    cosines = [float(meaning._vector(pair["a"]) @ meaning._vector(pair["b"])) for pair in PAIRS["different"]]
    assert max(cosines) > CLOSE


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("TILE_M 16 -> 32: a coarse jump", "TILE_M 16 -> 64: a coarse jump"),
        ("Set PAD = 1 for the LDS rows", "Set PAD = 4 for the LDS rows"),
        ("Set PAD = 1 for the LDS rows", "Set SKEW = 1 for the LDS rows"),
        ("Load 4 values a lane", "Load 8 values a lane"),
    ],
)
def test_other_values_are_another_experiment_without_asking_the_embedder(a: str, b: str) -> None:
    class Forbidden:
        name, dimensions = "none", 1

        def embed(self, texts: list[str]) -> Any:
            raise AssertionError("the rules are enough")

    assert EmbeddedMeaning(Forbidden(), 0.0).nearest(experiment(a), [experiment(b)]) is None


IDEA = "Pad each row of the LDS tile by one float so that column reads hit different banks."
AGAIN = "Avoid LDS bank conflicts by adding padding to the rows of the shared-memory tile."
OTHER = "Use MFMA matrix instructions for the inner product instead of vector FMAs."


@pytest.fixture
def population() -> Population:
    made = Population(BASELINE)
    made.record("0000", evaluation(1.0))
    return made


def lds(text: str) -> Experiment:
    return experiment(text, "LDS layout")


def tried(population: Population, text: str, *, parent: str = "0000", passed: bool = True) -> str:
    return add(population, evaluation(1.5) if passed else None, parent=parent, idea=lds(text)).id


def repeated(population: Population, base: str, experiments: Iterable[Experiment]) -> list[Refusal]:
    return list(find_repeats(list(experiments), population[base], population, shared_meaning()))


def test_an_experiment_tried_on_this_base_is_a_repetition_and_one_on_another_base_is_not(
    population: Population,
) -> None:
    first = tried(population, IDEA)
    other = tried(population, OTHER)

    (refusal,) = repeated(population, "0000", [lds(AGAIN), experiment(OTHER, "MFMA")])
    assert (refusal.experiment, refusal.candidate_id) == (0, first) and refusal.similarity >= CLOSE
    assert repeated(population, other, [lds(AGAIN)]) == []


def test_what_the_base_already_holds_is_a_repetition(population: Population) -> None:
    first = tried(population, IDEA)
    child = tried(population, OTHER, parent=first)
    (refusal,) = repeated(population, child, [lds(AGAIN)])
    assert refusal.candidate_id == first


def test_an_experiment_that_never_worked_was_not_tried(population: Population) -> None:
    tried(population, IDEA, passed=False)
    assert repeated(population, "0000", [lds(AGAIN)]) == []


def test_two_of_a_list_that_mean_the_same_are_one(population: Population) -> None:
    (refusal,) = repeated(population, "0000", [lds(IDEA), experiment(OTHER, "MFMA"), lds(AGAIN)])
    assert (refusal.experiment, refusal.repeats, refusal.candidate_id) == (2, 0, None)


def reply(*ideas: tuple[str, str]) -> str:
    experiments = [
        {"description": text, "rubric": ["r"], "strategy": strategy, "uplift_min": 1, "uplift_max": 5 + place,
         "innovation": 50 - place}
        for place, (text, strategy) in enumerate(ideas)
    ]  # fmt: skip
    return f"```json\n{json.dumps({'experiments': experiments, 'fewer': 'few'})}\n```"


PADDING, PADDING_AGAIN, MFMA = (IDEA, "LDS layout"), (AGAIN, "bank conflicts"), (OTHER, "MFMA")
UNROLL = ("Unroll the inner loop over the tile depth.", "unrolling")


NUMBERS = itertools.count(1)


def coder(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
    """A new program each time."""
    assert request.request == "code"
    place = "const int thread ="
    source = request.base.source.replace(place, f"if (m < -{next(NUMBERS)}) return;\n  {place}")
    return f'```json\n{{"report": "r"}}\n```\n```hip\n{source}\n```'


class Start:
    name = "start"

    def choose(self, situation: object) -> Any:
        from kernel_scientist.agents.policies import Parents

        return Parents("0000", None, "")


def test_the_next_of_the_five_runs_in_place_of_a_repetition(hold: Hold) -> None:
    answers = [reply(PADDING, MFMA, UNROLL), reply(PADDING_AGAIN, UNROLL, MFMA)]
    held = hold(
        generations=2, experiments=1, policy=Start(),
        models={"researcher": ScriptedModel(answers), "coder": ScriptedModel(coder)},
    )  # fmt: skip
    first, second = held.contents(Hypotheses)
    assert [one.experiment for one in first.chosen] == [0]
    assert [one.candidate_id for one in second.refused] == ["0001"]
    assert [one.experiment for one in second.chosen] == [1]
    calls = [call for call in held.of(ev.ModelCall) if call.agent == "researcher"]
    assert len(calls) == 2, "there were others, so nobody was asked again"


def test_the_researcher_is_told_and_asked_once_more_when_too_few_are_left(hold: Hold) -> None:
    requests: list[ResearchRequest] = []
    answers = [reply(PADDING), reply(PADDING_AGAIN), reply(MFMA)]

    def researcher(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        assert isinstance(request, ResearchRequest)
        requests.append(request)
        return answers[len(requests) - 1]

    held = hold(
        generations=2, experiments=1, policy=Start(),
        models={"researcher": ScriptedModel(researcher), "coder": ScriptedModel(coder)},
    )  # fmt: skip
    assert len(requests) == 3
    (told,) = requests[2].refused
    assert told.candidate_id == "0001" and told.result.startswith("accepted") and told.description == AGAIN
    plan = held.contents(Hypotheses)[1]
    assert plan.experiments[plan.chosen[0].experiment].strategy == "MFMA"


def test_a_researcher_who_insists_costs_no_evaluation(hold: Hold) -> None:
    answers = [reply(PADDING), reply(PADDING_AGAIN), reply(PADDING_AGAIN)]
    held = hold(
        generations=2, experiments=1, policy=Start(),
        models={"researcher": ScriptedModel(answers), "coder": ScriptedModel(coder)},
    )  # fmt: skip
    plan = held.contents(Hypotheses)[1]
    assert plan.chosen == () and "repeats candidate 0001" in plan.text
    assert held.run.info.totals.evaluations == 1
    assert held.result.stop_reason == "all 2 generations are done"


def test_the_offline_model_is_never_refused(hold: Hold) -> None:
    held = hold(generations=6, experiments=3, config=Config())
    assert not [plan.refused for plan in held.contents(Hypotheses) if plan.refused]


def test_without_the_embedding_model_the_session_goes_on_and_says_so(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing:
        name, dimensions = "missing", 1

        def embed(self, texts: list[str]) -> Any:
            raise UnusableEnvironment("The offline embedding model is incomplete.")

    import kernel_scientist.agents.policies.meaning as meaning

    monkeypatch.setattr(meaning, "_embedder", Missing)
    answers = [reply(PADDING), reply(PADDING_AGAIN)]
    held = hold(
        generations=2, experiments=1, policy=Start(),
        models={"researcher": ScriptedModel(answers), "coder": ScriptedModel(coder)},
    )  # fmt: skip
    assert held.run.info.totals.evaluations == 2
    assert any("repetitions are not looked for" in event.message for event in held.of(ev.ErrorRecorded))


def test_a_threshold_above_one_switches_it_off() -> None:
    assert EmbeddedMeaning(FakeEmbedder(), 1.5).nearest(lds(IDEA), [lds(IDEA)]) is None
    assert EmbeddedMeaning(FakeEmbedder(), 0.9).nearest(lds(IDEA), [lds(IDEA)]) is not None
