"""A fault at every operation of the store that a dispatcher uses, while it tells, archives and asks a model.

Nobody lists the operations: a proxy notes each one that is called, by name, and each gets a round of its own in
which its first call fails, before it was made or after it was made and only its answer is lost. A round is a
dispatcher from start to stop and one look that is told, copied and reviewed. So an operation that is new has its
round too. In `make soak` on each database, otherwise on SQLite.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.store import Store
from camserver.store.core import Operation
from tests.fakes.analyzer import Seen
from tests.fakes.llm import FakeLlm
from tests.fakes.webhook import FakeWebhook
from tests.rig.effort import THOROUGH
from tests.services.dispatcher.stage import Stage, StoreProxy
from tests.services.dispatcher.test_archiving import add_folder, files
from tests.services.dispatcher.test_faults import Countdown
from tests.services.dispatcher.test_outbox import add_webhook
from tests.services.dispatcher.test_reviewing_faults import reviews, with_model

R = TypeVar("R")
# Told because it is unknown, copied because it is, and asked about for the same reason.
UNKNOWN = Seen("unknown", ("reason.unknown_activity",), confidence=0.4)
# Past every cooldown, so that each round's look is an event of its own, told and reviewed.
ROUND_SEC = 700
STEP_SEC = 10
# What is done only now and then is waited for so many steps.
STEPS_MAX = 40
# Not in every round: once a day, once for a new receiver, when people did something, or only when something takes
# long or moves under a decision. They are struck when they happen to come.
SELDOM = (
    "summaries.",
    "archive.holds_copies",
    "audit_seals.put",
    "jobs.renew",
    "job_facts.claimed",
    "deliveries.renew",
    "deliveries.give_back",
)
# At least these are met, or the rounds show nothing.
EXPECTED = {
    *(
        "claim",
        "apply",
        "settle",
        "version",
        "everywhere",
        "tellings",
        "reserve_each",
        "picture",
        "find_subject",
        "sent_bytes",
    ),
    *("active", "sweep", "promote_delayed", "return_expired", "report", "release"),
}


class StrikingStore(StoreProxy):
    """Notes every operation, those in a principal's name by their own name, and fails the one that is armed."""

    def __init__(self, real: Store, countdown: Countdown, is_done: bool, seen: dict[str, int]) -> None:
        super().__init__(real)
        self.countdown, self.is_done, self.seen = countdown, is_done, seen

    async def read(self, operation: Operation[Any, R], *args: Any, **kwargs: Any) -> R:
        return await self._called(operation, args, lambda: self.real.read(operation, *args, **kwargs))

    async def write(self, operation: Operation[Any, R], *args: Any, **kwargs: Any) -> R:
        return await self._called(operation, args, lambda: self.real.write(operation, *args, **kwargs))

    async def _called(
        self, operation: Operation[Any, R], args: tuple[Any, ...], call: Callable[[], Coroutine[Any, Any, R]]
    ) -> R:
        inner = args[1] if operation.__name__ in ("in_name", "in_name_logged") else operation
        name = f"{inner.__module__.rpartition('.')[2]}.{inner.__name__}"
        self.seen.setdefault(name, len(self.seen))
        if not self.countdown.strikes(name):
            return await call()
        if self.is_done:
            await call()
        raise StoreUnavailable("struck by the test; the write may or may not stand")


@dataclass(slots=True)
class House:
    stage: Stage
    hook: FakeWebhook
    llm: FakeLlm
    archive: Path
    looks: int = 0

    async def round(self, store: Store, countdown: Countdown) -> None:
        """A dispatcher's whole life: it starts, one look is dealt with to the end, and it stops."""
        stage = self.stage
        self.looks += 1
        async with stage.dispatcher(store):
            await stage.look(0, UNKNOWN, full_bytes=None)
            await stage.pass_time_until_found(self.is_over, f"look {self.looks} is dealt with", STEP_SEC)
            for _ in range(STEPS_MAX):
                if not countdown.left:
                    break
                await stage.pass_time(STEP_SEC, STEP_SEC)
            # What it ran into late is made good, too.
            await stage.pass_time_until_found(self.is_over, f"look {self.looks} stays dealt with", STEP_SEC)
        stage.clock.leap(ROUND_SEC * 1000)

    async def is_over(self) -> bool:
        counts = await self.stage.counts()
        unfinished = await self.stage.rows(
            "SELECT 1 AS one FROM deliveries WHERE status IN ('queued','delayed','running')"
        )
        return counts == {"done": self.looks} and not unfinished and await self.told() >= self.looks

    async def told(self) -> int:
        """Messages about events. A day's summary, which comes too, is one of its own."""
        found = await self.stage.rows(
            """
            SELECT m.delivery_id FROM deliveries m JOIN deliveries n ON n.delivery_id = m.parent_id
            WHERE m.kind = 'message' AND n.kind = 'notify'"""
        )
        return len(found)

    async def check(self) -> None:
        """Nothing is lost, and nothing is there twice; what was sent twice has the same id."""
        stage = self.stage
        statuses = await stage.rows("SELECT kind, status, count(*) AS n FROM deliveries GROUP BY kind, status")
        found = {(row["kind"], row["status"]): row["n"] for row in statuses}
        assert {status for _, status in found} == {"done"}
        for kind in ("notify", "archive", "copy", "llm_review"):
            assert (kind, found[kind, "done"]) == (kind, self.looks)
        assert await self.told() == self.looks
        events = await stage.events()
        assert [event["frame_count"] for event in events] == [1] * self.looks
        messages = await stage.rows("SELECT delivery_uuid FROM deliveries WHERE kind = 'message'")
        assert self.hook.distinct == {row["delivery_uuid"] for row in messages}
        assert len(files(self.archive)) == self.looks
        assert [one["event_id"] for one in await reviews(stage)] == [one["event_id"] for one in events]


@pytest.fixture
async def house(stage: Stage, tmp_path: Path) -> AsyncIterator[House]:
    stage.settings = replace(
        stage.settings,
        deliveries=replace(stage.settings.deliveries, allow_loopback=True),
        archive=replace(stage.settings.archive, folders=(str(tmp_path / "mnt"),)),
        # So that a round of retention comes within a round of ours.
        retention=replace(stage.settings.retention, sweep_minutes=1, free_min_bytes=0),
    )
    (tmp_path / "mnt").mkdir()
    async with AsyncExitStack() as stack:
        hook = await stack.enter_async_context(FakeWebhook(key="0123456789abcdef"))
        llm = await stack.enter_async_context(FakeLlm())
        with_model(stage, llm)
        await add_webhook(stage, hook)
        await add_folder(stage, tmp_path / "mnt" / "archive")
        yield House(stage, hook, llm, tmp_path / "mnt" / "archive")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("db_kind", ["sqlite", "postgres", "mariadb"] if THOROUGH else ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_whatever_operation_fails_nothing_is_lost_and_nothing_done_twice(house: House, is_done: bool) -> None:
    countdown, seen = Countdown(), dict[str, int]()
    store = StrikingStore(house.stage.store, countdown, is_done, seen)
    tried: set[str] = set()
    await house.round(store, countdown)
    while waiting := [name for name in seen if name not in tried]:
        tried.add(waiting[0])
        countdown.arm((waiting[0], 0))
        try:
            await house.round(store, countdown)
        except TimeoutError as error:
            left = await house.stage.rows("SELECT * FROM deliveries WHERE status <> 'done'")
            raise TimeoutError(f"after a fault in {waiting[0]}: {error}; left are {left}") from error
        countdown.arm()
    await house.check()
    missed = {name for name in tried - set(countdown.struck) if not name.startswith(SELDOM)}
    assert not missed, f"these were called once and never again within a round: {sorted(missed)}"
    assert {name.partition(".")[2] for name in seen} >= EXPECTED
