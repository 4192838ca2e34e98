"""A fault at every step of a delivery: nothing is lost, and whatever is sent twice carries the same id.

Each round brings new notices and one fault: the n-th call of one kind fails, before it is made or after it was made
and only its answer is lost.
"""

from collections.abc import AsyncIterator

import pytest

from camserver.store import Store
from tests.fakes.webhook import Act, FakeWebhook
from tests.services.dispatcher.delivery_stage import DeliveryStage
from tests.services.dispatcher.test_faults import Countdown, FailingStore

# Operations of the store, and how many calls of each are let through before one fails; a round for each.
STEPS = (
    *(("claim", 0), ("claim", 1), ("claim", 2)),
    *(("settle", 0), ("settle", 1), ("settle", 2), ("settle", 3)),
    *(("return_expired", 0), ("promote_delayed", 0)),
    *(("version", 0), ("report", 0), ("give_back", 0), ("renew", 0)),
)
# These only sometimes happen within a round.
BY_LUCK = {"report", "give_back", "renew"}
NOTICES = 6


@pytest.fixture
async def stage(store: Store) -> DeliveryStage:
    return await DeliveryStage.open(store)


@pytest.fixture
async def hooks() -> AsyncIterator[tuple[FakeWebhook, FakeWebhook]]:
    async with FakeWebhook() as first, FakeWebhook() as second:
        yield first, second


async def check_all_arrived(stage: DeliveryStage, hooks: tuple[FakeWebhook, ...], notices: int) -> None:
    assert await stage.counts() == {"done": notices * (1 + len(hooks))}
    messages = {row["delivery_uuid"] for row in await stage.messages()}
    assert len(messages) == notices * len(hooks), "a fan-out that is repeated adds nothing"
    assert set.union(*(hook.distinct for hook in hooks)) == messages
    for hook in hooks:
        assert len(hook.distinct) == notices


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_any_call_of_the_store_may_fail(
    stage: DeliveryStage, hooks: tuple[FakeWebhook, FakeWebhook], is_done: bool
) -> None:
    countdown = Countdown()
    for number, hook in enumerate(hooks):
        await stage.receiver(hook, str(number))
    async with stage.desk(store=FailingStore(stage.store, countdown, is_done)):
        for step in STEPS:
            # So that something is put off, too.
            hooks[0].acts.extend([Act(503), Act(500)])
            countdown.arm(step)
            await stage.notices(NOTICES)
            await stage.until_over()
    await check_all_arrived(stage, hooks, NOTICES * len(STEPS))
    assert {name for name, _ in STEPS} - BY_LUCK <= set(countdown.struck)
    # A store that is away while results are at hand makes nobody send them again.
    assert len(hooks[1].received) == len(hooks[1].distinct)


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "act",
    [Act(cut_before=True), Act(cut_after=True), Act(503), Act(500), Act(429, {"Retry-After": "3"}), Act(302)],
    ids=["cut_before", "cut_after", "503", "500", "429", "302"],
)
async def test_any_request_to_a_receiver_may_fail(
    stage: DeliveryStage, hooks: tuple[FakeWebhook, FakeWebhook], act: Act
) -> None:
    for number, hook in enumerate(hooks):
        await stage.receiver(hook, str(number))
    async with stage.desk():
        for round_number in range(4):
            hooks[0].acts.extend([*[Act()] * round_number, act])
            await stage.notices(NOTICES)
            await stage.until_over()
    await check_all_arrived(stage, hooks, 4 * NOTICES)
    repeats = len(hooks[0].received) - len(hooks[0].distinct)
    assert repeats == (4 if act.cut_after else 0), "only what may have arrived is sent again"


async def test_dispatchers_that_die_at_any_moment_lose_nothing(
    stage: DeliveryStage, hooks: tuple[FakeWebhook, FakeWebhook]
) -> None:
    """Killed in the middle of a round, without giving anything back: the next one goes on when the locks ran out."""
    countdown = Countdown()
    for number, hook in enumerate(hooks):
        await stage.receiver(hook, str(number))
    for number in range(6):
        await stage.notices(NOTICES)
        store = FailingStore(stage.store, countdown, is_done=bool(number % 2))
        countdown.arm(("settle", number % 3))
        async with stage.desk(store=store, name=f"desk {number}"):
            await stage.clock.some_turns(number * 3)
            # What gives claims back at the end fails too, as if the process were gone.
            countdown.arm(("release", 0))
    async with stage.desk(name="the last"):
        await stage.until_over()
    await check_all_arrived(stage, hooks, 6 * NOTICES)
