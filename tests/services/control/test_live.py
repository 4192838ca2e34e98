"""LIVE_START through a running control: to the camera's holder, while a viewing wants to be fed."""

from camserver.config import make_secrets
from camserver.domain.live_links import LiveKeys, live_keys, read_ticket
from camserver.services.control.live import ASK_AGAIN_MS, LOOK_EVERY_SEC
from camserver.store import Tx
from camserver.wire.live import SYNC_PATH, Load, Sync, Synced, Watched, parse_synced
from camserver.wire.worker import Ack, LiveStart
from tests.services.control.rig import RunningControl, ScriptedWorker

STREAMER = Sync(streamer_id="streamer-1", port=8082, feed_url="ws://127.0.0.1:8082/v1/feed", total_units=50)
CALM = Load(cpu_percent=1.0, memory_percent=1.0, swap_mb=0.0)


def keys_of(control: RunningControl) -> LiveKeys:
    return live_keys(make_secrets(control.settings).media_hmac.reveal().encode())


async def post(control: RunningControl, sync: Sync, token: str | None = None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {keys_of(control).streamer_token if token is None else token}"}
    async with control.http.post(control.url(SYNC_PATH), data=sync.model_dump_json(), headers=headers) as answer:
        return answer.status, await answer.read()


async def synced(control: RunningControl, **values: object) -> Synced:
    status, body = await post(control, STREAMER.model_copy(update=values))
    assert status == 200, body
    return parse_synced(body)


async def admit(tx: Tx, lease_id: str, now_ms: int) -> None:
    await tx.run(
        """
        INSERT INTO modal_leases (lease_id, tenant_id, site_id, camera_key, streamer_id, user_id, quality, units,
          created_at, expires_at, last_heartbeat, valid_until)
        SELECT :lease_id, tenant_id, site_id, camera_key, 'streamer-1', :lease_id, 'sub', 1, :now_ms, :until, :now_ms,
          :until FROM cameras WHERE camera_id = 'cam_1'""",
        lease_id=lease_id,
        now_ms=now_ms,
        until=now_ms + 300_000,
    )


async def watched(control: RunningControl) -> ScriptedWorker:
    """A worker that holds a camera which somebody wants to watch."""
    await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    await worker.beat(("cam_1", 1))
    await synced(control, load=CALM)
    await control.store.write(admit, "lease-1", control.clock.now_ms())
    return worker


async def test_the_holder_is_asked_at_once_when_web_rings(control: RunningControl) -> None:
    """The time stands still: nobody looks by himself."""
    worker = await watched(control)
    control.bells.live.ring()
    assert (await worker.hear(LiveStart)).camera_id == "cam_1"


async def test_the_holder_is_asked_at_once_when_a_streamer_wants_it(control: RunningControl) -> None:
    worker = await watched(control)
    await synced(control, watched=(Watched(lease_id="lease-1", feed="wanted"),))
    assert (await worker.hear(LiveStart)).camera_id == "cam_1"


async def test_the_holder_is_asked_with_a_ticket_for_that_streamer(control: RunningControl) -> None:
    worker = await watched(control)
    await control.pass_time(LOOK_EVERY_SEC, LOOK_EVERY_SEC)
    asked = await worker.hear(LiveStart)
    assert (asked.camera_id, asked.generation, asked.quality) == ("cam_1", 1, "sub")
    assert asked.streamer_url == STREAMER.feed_url
    ticket = read_ticket(keys_of(control), asked.ticket, "streamer-1", control.clock.now_ms())
    assert (ticket.tenant_id, ticket.camera_id, ticket.worker_id) == (control.tenant_id, "cam_1", "worker-1")


async def test_it_is_asked_again_until_the_streamer_is_fed(control: RunningControl) -> None:
    worker = await watched(control)
    await control.pass_time(LOOK_EVERY_SEC, LOOK_EVERY_SEC)
    first = await worker.hear(LiveStart)
    await control.pass_time(ASK_AGAIN_MS / 1000 + 1, 0.5)
    again = await worker.hear(LiveStart)
    assert first.ticket != again.ticket
    await synced(control, watched=(Watched(lease_id="lease-1", feed="fed"),))
    asked = len([one for one in worker.heard if isinstance(one, LiveStart)])
    await control.pass_time(2 * ASK_AGAIN_MS / 1000, 0.5)
    await worker.beat(("cam_1", 1))
    assert len([one for one in worker.heard if isinstance(one, LiveStart)]) == asked
    # Wanted anew, it does not wait for the time of the last one.
    await synced(control, watched=(Watched(lease_id="lease-1", feed="wanted"),))
    await control.pass_time(LOOK_EVERY_SEC, LOOK_EVERY_SEC)
    await worker.hear(LiveStart)


async def test_why_a_worker_refuses_is_told_to_the_streamer(control: RunningControl) -> None:
    worker = await watched(control)
    await control.pass_time(LOOK_EVERY_SEC, LOOK_EVERY_SEC)
    asked = await worker.hear(LiveStart)
    await worker.say(Ack(intent_id=asked.intent_id, status="refused", details="shed: the line is short"))
    await worker.beat(("cam_1", 1))
    [viewing] = (await synced(control)).viewings
    assert (viewing.feed_reason, viewing.generation, viewing.is_held) == ("shed: the line is short", 1, True)


async def test_only_a_streamer_of_this_installation_is_answered(control: RunningControl) -> None:
    assert (await post(control, STREAMER, token="made-up"))[0] == 401
    assert (await post(control, STREAMER, token=control.token.reveal()))[0] == 401
    headers = {"Authorization": f"Bearer {keys_of(control).streamer_token}"}
    async with control.http.post(control.url(SYNC_PATH), data="{}", headers=headers) as answer:
        assert answer.status == 400
