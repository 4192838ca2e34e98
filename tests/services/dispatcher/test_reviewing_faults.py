"""From a look to a review through the whole dispatcher, with a fault at every step of it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.secrets import Secret
from camserver.config.sections import LlmSettings
from camserver.store import Store
from tests.fakes.analyzer import Seen
from tests.fakes.llm import KEY, FakeLlm, Trick
from tests.services.dispatcher.stage import Stage
from tests.services.dispatcher.test_faults import Countdown, FailingStore, rounds_of

UNKNOWN = Seen("unknown", ("reason.unknown_activity",), confidence=0.4)
# Calls of the store that fail, and tricks of the model, one a round.
STEPS = (("find_subject", 0), ("reserve", 0), ("settle", 0))
TRICKS = ("reset", "cut", "overloaded", "prose", "garbage")
ROUND_SEC = 690


@pytest.fixture
async def llm() -> AsyncIterator[FakeLlm]:
    async with FakeLlm() as fake:
        yield fake


def with_model(stage: Stage, llm: FakeLlm) -> None:
    chosen = LlmSettings(
        provider="gemini", model="gemini-2.5-flash", base_url=llm.url("gemini"), key=Secret(KEY), price_in=1.0
    )
    stage.settings = replace(stage.settings, llm=chosen)


async def reviews(stage: Stage) -> list[dict[str, Any]]:
    return await stage.rows("SELECT * FROM llm_reviews WHERE label <> '' ORDER BY review_id")


async def until_reviewed(stage: Stage, count: int) -> None:
    async def is_so() -> bool:
        unfinished = await stage.rows(
            "SELECT 1 AS one FROM deliveries WHERE kind = 'llm_review' AND status IN ('queued','delayed','running')"
        )
        return not unfinished and len(await reviews(stage)) >= count

    await stage.pass_time_until_found(is_so, f"{count} reviews", 10)


async def reviewed(stage: Stage, number: int) -> None:
    """The round of that number: an event of its own, which gets its review."""
    await stage.look(0, UNKNOWN)
    await stage.until_nothing_waits()
    await until_reviewed(stage, number)
    await stage.leap(ROUND_SEC)


async def check_each_has_one_review(stage: Stage, rounds: int) -> None:
    found = await reviews(stage)
    events = await stage.events()
    assert [review["event_id"] for review in found] == [event["event_id"] for event in events]
    assert len(events) == rounds
    (day,) = await stage.rows("SELECT calls, tokens_in FROM llm_days")
    assert day["calls"] >= len(found), "never less than what was asked and answered"
    statuses = await stage.rows("SELECT DISTINCT status FROM deliveries WHERE kind = 'llm_review'")
    assert [row["status"] for row in statuses] == ["done"]
    assert len(await stage.rows("SELECT * FROM llm_reviews")) == len(found)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_every_unknown_event_gets_one_review_whatever_call_of_the_store_fails(
    stage: Stage, llm: FakeLlm, is_done: bool
) -> None:
    with_model(stage, llm)
    countdown = Countdown()
    store: Store = FailingStore(stage.store, countdown, is_done)
    rounds = rounds_of(STEPS)
    async with stage.dispatcher(store=store):
        for number, steps in enumerate(rounds, start=1):
            countdown.arm(*steps)
            await reviewed(stage, number)
    assert {name for name, _ in STEPS} == set(countdown.struck)
    await check_each_has_one_review(stage, len(rounds))


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_every_unknown_event_gets_one_review_whatever_the_model_does(stage: Stage, llm: FakeLlm) -> None:
    with_model(stage, llm)
    async with stage.dispatcher():
        for number, trick in enumerate(TRICKS, start=1):
            llm.tricks.append(Trick(trick))
            await reviewed(stage, number)
    await check_each_has_one_review(stage, len(TRICKS))
