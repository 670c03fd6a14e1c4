"""What is known of prices, from where, and what a call costs."""

from __future__ import annotations

import tomllib
from datetime import date
from importlib import resources
from pathlib import Path

import pytest

from kernel_scientist.agents.budget import cost_of
from kernel_scientist.agents.config import ModelsConfig, Price
from kernel_scientist.agents.events import Usage
from kernel_scientist.agents.models.prices import find_offer
from kernel_scientist.sandbox.errors import UsageError

OPENAI = "https://api.openai.com/v1"
OWN = (
    '[[services]]\nhost = "api.openai.com"\ndate = "2026-11-11"\nsource = "my contract"\n[services.models]\n'
)


def test_every_shipped_price_has_a_source_and_a_date_and_makes_sense() -> None:
    file = resources.files("kernel_scientist.agents.models") / "prices.toml"
    services = tomllib.loads(file.read_text())["services"]
    for service in services:
        assert service["source"].startswith("https://") and date.fromisoformat(service["date"])
        for name in service["models"]:
            offer = find_offer(name, f"https://{service['host']}/v1", ModelsConfig())
            assert offer.price is not None and offer.price.source == service["source"]
            assert offer.price.cached is not None
            assert 0 < offer.price.cached < offer.price.input <= offer.price.output
            assert offer.context is not None and offer.context >= 100_000


def test_a_price_holds_for_its_service_alone() -> None:
    known = find_offer("gpt-5", OPENAI, ModelsConfig())
    assert known.price is not None and known.context is not None
    assert find_offer("gpt-5", "http://localhost:8000/v1", ModelsConfig()).price is None
    assert find_offer("gpt-5-turbo-xl", OPENAI, ModelsConfig()).price is None
    assert find_offer("gpt-5-2025-08-07", OPENAI, ModelsConfig()) == known
    assert find_offer("gpt-5-2025-08-xx", OPENAI, ModelsConfig()).price is None


def test_the_user_s_own_prices_go_before_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path))
    (tmp_path / "prices.toml").write_text(OWN + "gpt-5 = { input = 7, output = 8, context = 9000 }\n")
    offer = find_offer("gpt-5", OPENAI, ModelsConfig())
    assert offer.price == Price(input=7, output=8, source="my contract", date="2026-11-11")
    assert offer.context == 9000

    named = tmp_path / "other.toml"
    named.write_text(OWN + 'gpt-5 = { input = 3, output = 4, date = "2026-11-12" }\n')
    offer = find_offer("gpt-5", OPENAI, ModelsConfig(prices_file=named))
    assert offer.price == Price(input=3, output=4, source="my contract", date="2026-11-12")

    inline = ModelsConfig(prices={"gpt-5": Price(input=1, output=2)}, prices_file=named)
    assert find_offer("gpt-5", OPENAI, inline).price == Price(input=1, output=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("services = 3\n", "services"),
        (OWN + "gpt-5 = { input = -1, output = 2 }\n", "gpt-5.input"),
        (OWN + "gpt-5 = { input = 1 }\n", "gpt-5.output"),
        ("[[services\n", "is not TOML"),
        (f"x = {'9' * 5000}\n", "is not TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_table_is_a_sentence_that_names_the_place(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "prices.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=said) as error:
        find_offer("gpt-5", OPENAI, ModelsConfig(prices_file=file))
    assert str(file) in str(error.value)


def test_cached_tokens_cost_their_own_price() -> None:
    price = Price(input=2.0, cached=0.5, output=8.0)
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=100_000, cached_tokens=400_000)
    assert cost_of(usage, price) == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 8.0)
    assert cost_of(usage, price.model_copy(update={"cached": None})) == pytest.approx(2.8)
    assert cost_of(usage, None) is None
