"""What viewings need to be fed: said by their streamer, read by control, which asks the camera's worker.

A viewing begins as `wanted`. Its streamer says `fed` while a worker pushes, and `idle` while nobody is attached.
"""

from camserver.domain.admission import AdmissionPolicy, Load, Quality
from camserver.store import streamers, viewings
from camserver.store.core import Store
from camserver.store.tx import Tx
from camserver.wire.live import Gone, LiveViewing, Sync, Synced, WantedFeed, Watched

BATCH_MAX = 1_000
REASON_MAX_CHARS = 255


async def sync(store: Store, asked: Sync, policy: AdmissionPolicy, now_ms: int) -> Synced:
    """Notes what a streamer says and tells it what is valid. Without news nothing is written."""
    if asked.is_stopping:
        await store.write(streamers.stopped, asked.streamer_id)
        return Synced(server_time=now_ms, viewings=())
    if asked.load is not None:
        await store.write(streamers.check_in, _report(asked), policy, now_ms)
    if asked.watched:
        await store.write(note_feeds, asked.streamer_id, asked.watched)
    no_room: tuple[str, ...] = ()
    if asked.unplayable:
        no_room = await store.write(transcode, asked.streamer_id, asked.unplayable, policy, now_ms)
    found: Synced = await store.read(standing, asked.streamer_id, asked.asked, now_ms)
    return found.model_copy(update={"no_room": no_room}) if no_room else found


def _report(asked: Sync) -> streamers.StreamerReport:
    load = asked.load
    return streamers.StreamerReport(
        streamer_id=asked.streamer_id,
        public_url=asked.public_url,
        port=asked.port,
        feed_url=asked.feed_url,
        total_units=asked.total_units,
        load=None if load is None else Load(load.cpu_percent, load.memory_percent, load.swap_mb),
    )


async def note_feeds(tx: Tx, streamer_id: str, watched: tuple[Watched, ...]) -> None:
    """Which viewings of a streamer are fed, want to be, or need nothing."""
    for feed in ("wanted", "fed", "idle"):
        lease_ids = tuple(one.lease_id for one in watched if one.feed == feed)
        if lease_ids:
            await tx.run(
                "UPDATE modal_leases SET feed = :feed, feed_reason = '' "
                "WHERE streamer_id = :streamer_id AND lease_id IN (:lease_ids...)",
                feed=feed,
                streamer_id=streamer_id,
                lease_ids=lease_ids,
            )


async def transcode(
    tx: Tx, streamer_id: str, lease_ids: tuple[str, ...], policy: AdmissionPolicy, now_ms: int
) -> tuple[str, ...]:
    """Has what these viewings show transcoded from now on; those for which there is no room."""
    rows = await tx.all(
        "SELECT lease_id, camera_key, quality, transcode FROM modal_leases WHERE streamer_id = :streamer_id "
        "AND lease_id IN (:lease_ids...) ORDER BY lease_id",
        streamer_id=streamer_id,
        lease_ids=lease_ids,
    )
    no_room = []
    for row in rows:
        quality = Quality(row["quality"])
        if not row["transcode"] and not await viewings.charge_transcode(
            tx, streamer_id, row["camera_key"], quality, policy, now_ms
        ):
            no_room.append(str(row["lease_id"]))
    return tuple(no_room)


async def standing(tx: Tx, streamer_id: str, lease_ids: tuple[str, ...], now_ms: int) -> Synced:
    """The valid viewings of a streamer, each with how its camera stands."""
    found = await viewings.valid_on(tx, streamer_id, lease_ids, now_ms)
    camera_keys = sorted({viewing.camera_key for viewing in found.viewings})
    rows = (
        await tx.all(
            "SELECT camera_key, generation, worker_key, state FROM camera_sessions "
            "WHERE camera_key IN (:camera_keys...)",
            camera_keys=camera_keys,
        )
        if camera_keys
        else ()
    )
    generations = {row["camera_key"]: row["generation"] for row in rows}
    costs = viewings.costs_now(found.viewings)
    held = {row["camera_key"] for row in rows if row["worker_key"] is not None and row["state"] != "ORPHANED"}
    return Synced(
        server_time=now_ms,
        viewings=tuple(
            LiveViewing(
                lease_id=one.lease_id,
                tenant_id=one.tenant_id,
                camera_id=one.camera_id,
                quality=one.quality.value,
                transcode=one.transcode,
                kind=one.kind.value,
                expires_at=one.expires_at,
                feed=one.feed,  # type: ignore[arg-type]  # a row holds text; the message checks it
                feed_reason=one.feed_reason,
                generation=generations.get(one.camera_key, 0),
                is_held=one.camera_key in held,
                units=costs[one.lease_id],
            )
            for one in found.viewings
        ),
        gone=tuple(Gone(lease_id=lease_id, reason=reason) for lease_id, reason in found.gone),
    )


async def is_any_wanted(tx: Tx) -> bool:
    """Mostly nobody watches, and this is cheap to know."""
    return await tx.one("SELECT 1 AS found FROM modal_leases WHERE feed = 'wanted' LIMIT 1") is not None


async def wanted_feeds(tx: Tx, worker_keys: tuple[int, ...], now_ms: int) -> tuple[WantedFeed, ...]:
    """What these workers are to push, where they do not yet.

    One that comes to a stream which another viewing is fed from gets it from there: being asked once more, the worker
    would begin anew, and all who watch would see it.
    """
    rows = await tx.all(_WANTED, worker_keys=worker_keys, now_ms=now_ms, batch_max=BATCH_MAX)
    return tuple(
        WantedFeed(
            streamer_id=row["streamer_id"],
            feed_url=row["feed_url"],
            tenant_id=row["tenant_id"],
            camera_key=row["camera_key"],
            camera_id=row["camera_id"],
            generation=row["generation"],
            quality=row["quality"],
            transcode=bool(row["transcode"]),
            worker_key=row["worker_key"],
        )
        for row in rows
    )


async def refused(tx: Tx, wanted: WantedFeed, reason: str) -> None:
    """A worker said why it does not push; whoever watches is told."""
    await tx.run(
        "UPDATE modal_leases SET feed_reason = :reason WHERE streamer_id = :streamer_id AND camera_key = :camera_key "
        "AND quality = :quality AND transcode = :transcode AND feed = 'wanted'",
        transcode=int(wanted.transcode),
        reason=reason[:REASON_MAX_CHARS],
        streamer_id=wanted.streamer_id,
        camera_key=wanted.camera_key,
        quality=wanted.quality,
    )


_WANTED = """
SELECT DISTINCT v.streamer_id, p.feed_url, v.tenant_id, v.camera_key, c.camera_id, s.generation, v.quality,
  v.transcode, s.worker_key
FROM modal_leases v
JOIN streamers p ON p.streamer_id = v.streamer_id
JOIN cameras c ON c.camera_key = v.camera_key
JOIN camera_sessions s ON s.camera_key = v.camera_key
WHERE v.feed = 'wanted' AND v.valid_until >= :now_ms AND p.reported_at IS NOT NULL
  AND s.worker_key IN (:worker_keys...) AND s.state <> 'ORPHANED' AND s.stop_wanted = 0
  AND NOT EXISTS (
    SELECT 1 FROM modal_leases o WHERE o.camera_key = v.camera_key AND o.streamer_id = v.streamer_id
      AND o.quality = v.quality AND o.transcode = v.transcode AND o.feed = 'fed' AND o.valid_until >= :now_ms
  )
ORDER BY v.camera_key LIMIT :batch_max"""
