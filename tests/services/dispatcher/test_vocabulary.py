"""The analyzer has the vocabulary that the store calls active: at start, on a change, and when it says it has not."""

import asyncio
import json

import pytest

from camserver.base.errors import BadInput
from camserver.clients.analyzer import AnalyzerClient
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.services.dispatcher.vocabulary import ActiveVocabulary, Supply
from camserver.store import vocabularies
from camserver.store.tx import Tx
from camserver.store.vocabularies import Document
from tests.domain.build import shipped_document
from tests.fakes.analyzer import Fault, Rule, Seen
from tests.rig.polling import until
from tests.services.dispatcher.stage import Stage

NEXT_VERSION = "2026-06-01.1"
HUMAN = Seen("human", ("count.single",))
pytestmark = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)


async def activate(stage: Stage, version: str = NEXT_VERSION) -> None:
    document = Document(version, json.dumps({**shipped_document(), "schema_version": version}))
    await stage.store.write(vocabularies.add, document, stage.clock.now_ms())
    await stage.store.write(vocabularies.activate, version, stage.clock.now_ms())


def puts(stage: Stage) -> list[str | None]:
    return [record.schema_version for record in stage.analyzer.requests if record.method == "PUT"]


async def test_it_is_sent_at_start_before_anything_is_asked(stage: Stage) -> None:
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(done=1)
    assert [record.method for record in stage.analyzer.requests] == ["PUT", "POST"]
    assert stage.analyzer.schema_version == SHIPPED_VERSION


async def test_an_analyzer_that_is_away_at_start_gets_it_later(stage: Stage) -> None:
    await stage.analyzer.refuse()
    async with stage.dispatcher():
        await stage.analyzer.accept()
        assert puts(stage) == []
        await stage.clock.until_sleeping(2)
        await stage.pass_time_until(lambda: puts(stage) == [SHIPPED_VERSION], "the vocabulary at the analyzer")
        await stage.pass_time(90, 30)
        assert puts(stage) == [SHIPPED_VERSION], "once is enough"


async def test_a_change_is_sent_and_used(stage: Stage) -> None:
    async with stage.dispatcher():
        await until(lambda: puts(stage) == [SHIPPED_VERSION], "the first vocabulary")
        await activate(stage)
        await stage.pass_time_until(lambda: puts(stage) == [SHIPPED_VERSION, NEXT_VERSION], "the second vocabulary")
        await stage.look(0, HUMAN)
        await stage.until_status(done=1)
    assert [record.schema_version for record in stage.analyzer.analyses()] == [NEXT_VERSION]
    (frame,) = await stage.rows("SELECT result_json FROM frames")
    assert json.loads(frame["result_json"])["schema_version"] == NEXT_VERSION


async def test_a_mismatch_sends_what_the_store_calls_active_now(stage: Stage) -> None:
    """Another dispatcher has noticed the change already and told the analyzer; ours has not."""
    async with stage.dispatcher():
        await until(lambda: puts(stage) == [SHIPPED_VERSION], "the first vocabulary")
        await activate(stage)
        stage.analyzer.forget_vocabulary()
        await stage.look(0, HUMAN)
        await stage.until_status(done=1)
    calls = [(record.method, record.schema_version, record.status) for record in stage.analyzer.requests]
    assert calls[1:] == [
        ("POST", SHIPPED_VERSION, 409),
        ("PUT", NEXT_VERSION, 200),
        ("POST", NEXT_VERSION, 200),
    ]
    assert (await stage.jobs())[0]["attempt"] == 1


async def test_many_mismatches_at_once_send_it_once(stage: Stage) -> None:
    async with stage.dispatcher():
        await until(lambda: puts(stage) == [SHIPPED_VERSION], "the first vocabulary")
        stage.analyzer.forget_vocabulary()
        stage.analyzer.add_fault(Rule(Fault.hold(), times=3))
        for camera in range(3):
            await stage.look(camera, HUMAN)
        await stage.analyzer.until_received(4)
        stage.analyzer.heal()
        await stage.until_status(done=3)
    assert puts(stage) == [SHIPPED_VERSION] * 2


async def test_several_offers_at_once_send_it_once(stage: Stage) -> None:
    """The look after an analyzer's health offers it too."""
    active = ActiveVocabulary(stage.store)
    await active.refresh()
    client = AnalyzerClient(stage.analyzer.url, analyze_timeout_sec=60, schema_timeout_sec=60, health_timeout_sec=60)
    supply = Supply(active, client)
    try:
        await asyncio.gather(*(supply.offer() for _ in range(5)))
        assert puts(stage) == [SHIPPED_VERSION]
        await activate(stage)
        await asyncio.gather(*(supply.offer() for _ in range(5)))
        assert puts(stage) == [SHIPPED_VERSION, NEXT_VERSION]
    finally:
        await client.close()


async def test_a_second_mismatch_in_an_attempt_counts(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.answer_status(409), times=2))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        (job,) = await stage.jobs()
        assert job["attempt"] == 1
        assert job["last_error"].startswith("vocabulary_mismatch")
        await stage.pass_time(4, 1)
        await stage.until_status(done=1)
    calls = [(record.method, record.status) for record in stage.analyzer.requests]
    assert calls == [("PUT", 200), ("POST", 409), ("PUT", 200), ("POST", 409), ("POST", 200)]
    assert (await stage.jobs())[0]["attempt"] == 2


async def test_a_vocabulary_the_analyzer_refuses_condemns_no_job_at_once(stage: Stage) -> None:
    stage.analyzer.add_fault(Rule(Fault.answer_status(400), path="/v1/schema"))
    await stage.look(0, HUMAN)
    async with stage.dispatcher():
        await stage.until_status(delayed=1)
        assert "the vocabulary 2025-12-28.1 was refused" in (await stage.jobs())[0]["last_error"]
        stage.analyzer.heal()
        await stage.pass_time(4, 1)
        await stage.until_status(done=1)


async def test_an_analyzer_that_vanishes_between_mismatch_and_vocabulary_costs_no_attempt(stage: Stage) -> None:
    async with stage.dispatcher():
        await until(lambda: puts(stage) == [SHIPPED_VERSION], "the first vocabulary")
        stage.analyzer.forget_vocabulary()
        # Twice: the client may try once more by itself when a connection it kept turns out to be dead.
        stage.analyzer.add_fault(Rule(Fault.reset(), path="/v1/schema", times=2))
        await stage.look(0, HUMAN)
        await stage.until_status(delayed=1)
        assert (await stage.jobs())[0]["attempt"] == 0
        await stage.pass_time(4, 1)
        await stage.until_status(done=1)


async def written_past_us(tx: Tx) -> None:
    await tx.run("UPDATE schema_versions SET schema_version = 'broken', document = '{}' WHERE active_slot = 1")


async def test_an_active_vocabulary_that_can_not_be_used_leaves_the_one_in_use(stage: Stage) -> None:
    async with stage.dispatcher():
        await stage.store.write(written_past_us)
        await stage.pass_time(60, 30)
        await stage.look(0, HUMAN)
        await stage.until_status(done=1)
    assert [record.schema_version for record in stage.analyzer.analyses()] == [SHIPPED_VERSION]


async def test_a_vocabulary_that_can_not_be_used_is_not_activated(stage: Stage) -> None:
    before = await stage.store.read(vocabularies.active)
    await stage.store.write(vocabularies.add, Document("broken", "{}"), stage.clock.now_ms())
    with pytest.raises(BadInput, match="schema_version"):
        await stage.store.write(vocabularies.activate, "broken", stage.clock.now_ms())
    assert await stage.store.read(vocabularies.active) == before
