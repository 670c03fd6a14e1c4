"""What is cut where a window is too small: the least missed first, named, never a call without its result."""

from __future__ import annotations

import pytest
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from kernel_scientist.agents.packing import fit_messages, pack, room_for
from kernel_scientist.agents.requests import (
    DigestLine,
    KernelView,
    PassageView,
    PopulationRow,
    ProblemView,
    ResearchRequest,
    SelectRequest,
    render_request,
)
from kernel_scientist.knowledge.tokens import count_tokens

WORDS = "the quick brown fox jumps over a lazy dog and reads twelve papers on banks. "
PROBLEM = ProblemView(name="p", title="t", description="d")


def _research() -> ResearchRequest:
    kernel = KernelView(id="0000", source="__global__ void k() {}\n" * 20)
    return ResearchRequest(
        generation=1, avenues=10, experiments=5, searches=2, problem=PROBLEM, base=kernel,
        reference=kernel.model_copy(update={"id": "0001", "source": "// other\n" * 200}),
        digest=tuple(DigestLine(candidate_id="0001", strategy="", tried=WORDS, result="") for _ in range(20)),
        passages=tuple(PassageView(id=f"p#{n}", citation="c", text=WORDS * 20) for n in range(6)),
    )  # fmt: skip


def test_a_request_that_fits_is_left_alone() -> None:
    request = _research()
    assert pack(request, 1_000_000) == (request, ())


@pytest.mark.parametrize("room", [400, 1_500, 3_000, 5_000])
def test_cuts_are_named_and_the_base_stays_whole(room: int) -> None:
    request = _research()
    packed, cut = pack(request, room)
    assert isinstance(packed, ResearchRequest) and packed.base == request.base
    assert cut and cut[0] == "all but 3 passages"
    assert (packed.passages == ()) == ("passages" in cut)
    assert (packed.reference is None) == ("the Reference" in cut)
    assert count_tokens(render_request(packed)) <= room * 0.75 or "digest" in cut


def test_less_room_never_keeps_more() -> None:
    sizes = [count_tokens(render_request(pack(_research(), room)[0])) for room in range(500, 8_000, 500)]
    assert sizes == sorted(sizes)


def test_nothing_is_said_to_be_cut_that_was_not_there() -> None:
    row = PopulationRow(id="0000", summary=WORDS * 100)
    request = SelectRequest(generation=1, problem=PROBLEM, population=(row,), population_size=1)
    assert pack(request, 500) == (request, ())


def _conversation(rounds: int) -> list[LLMMessage]:
    messages: list[LLMMessage] = [SystemMessage(content="be brief"), UserMessage(content=WORDS, source="m")]
    for number in range(rounds):
        call = FunctionCall(id=str(number), name="search", arguments="{}")
        result = FunctionExecutionResult(
            content=WORDS * 30, name="search", call_id=str(number), is_error=False
        )
        messages.append(AssistantMessage(content=[call], source="a"))
        messages.append(FunctionExecutionResultMessage(content=[result]))
    messages.append(AssistantMessage(content=WORDS * 30, source="a"))
    messages.append(UserMessage(content="That answer cannot be used.", source="m"))
    return messages


@pytest.mark.parametrize("room", [200, 1_000, 2_000, 100_000])
def test_a_long_conversation_loses_its_oldest_results_and_keeps_its_pairs(room: int) -> None:
    messages = _conversation(5)
    kept, cut = fit_messages(messages, room)
    assert [type(one) for one in kept] == [type(one) for one in messages]
    assert (kept[:2], kept[-1]) == (messages[:2], messages[-1])
    changed = [i for i, (old, new) in enumerate(zip(messages, kept, strict=True)) if old != new]
    results = [i for i, one in enumerate(messages) if isinstance(one, FunctionExecutionResultMessage)]
    assert changed[: len(results)] == results[: len(changed)]
    assert bool(cut) == bool(changed)
    if room >= 1_000:
        assert sum(count_tokens(str(one.content)) for one in kept) <= room + 100
    for index in results:
        (result,) = kept[index].content  # type: ignore[misc]
        (call,) = kept[index - 1].content  # type: ignore[misc]
        assert result.call_id == call.id  # type: ignore[union-attr]


def test_the_room_is_the_window_less_the_answer_and_the_prompt() -> None:
    assert room_for(10_000, 2_000) == 7_000
    assert room_for(10_000, 2_000, WORDS) == 7_000 - count_tokens(WORDS)
    assert room_for(1_000, 5_000) == 500
