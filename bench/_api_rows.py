"""People who are signed in, and changes of a house of cameras, as rows: importable, for the store's writer."""

from collections.abc import Sequence

from camserver.domain.change_kinds import ChangeKind
from camserver.services.web.access import token_hash
from camserver.store import Tx
from tests.store.people_rows import add_user


async def sign_in_people(tx: Tx, tenant_id: int, site_ids: Sequence[int], tokens: Sequence[str], now_ms: int) -> None:
    """One person for each token."""
    for number, token in enumerate(tokens):
        user_id = await add_user(tx, tenant_id, f"person-{number}", "viewer", None, now_ms)
        if number % 2:
            await tx.run("UPDATE users SET granted_only = 1 WHERE user_id = :user_id", user_id=user_id)
            await tx.run(
                "INSERT INTO grants (tenant_id, user_id, site_id) VALUES (:tenant_id, :user_id, :site_id)",
                tenant_id=tenant_id,
                user_id=user_id,
                site_id=site_ids[number // 2 % len(site_ids)],
            )
        await tx.run(
            "INSERT INTO sessions (tenant_id, user_id, token_hash, csrf_token, created_at, expires_at, last_seen_at, "
            "address, user_agent) VALUES (:tenant_id, :user_id, :token_hash, :token, :now_ms, :expires_at, :now_ms, "
            "'127.0.0.1', 'bench')",
            tenant_id=tenant_id,
            user_id=user_id,
            token_hash=token_hash(token),
            token=token,
            now_ms=now_ms,
            expires_at=now_ms + 3_600_000,
        )


async def change(tx: Tx, tenant_id: int, place: tuple[int, int], event_id: int, number: int, now_ms: int) -> None:
    """One change as a look makes it: of an event, of an incident, or a new picture."""
    site_id, camera_key = place
    kinds: tuple[ChangeKind, ...] = ("event", "incident", "frame", "camera")
    kind = kinds[number % 4]
    tx.changed(
        tenant_id=tenant_id,
        kind=kind,
        at_ms=now_ms,
        site_id=site_id,
        camera_key=camera_key,
        object_id=event_id if kind == "event" else None,
    )


async def newest_of(tx: Tx, tenant_id: int) -> tuple[str, str, int, int, int]:
    """The newest event and the newest frame with a picture: their uuids, the frame's time, epoch and camera."""
    event = await tx.one(
        "SELECT event_uuid FROM events WHERE tenant_id = :tenant_id ORDER BY start_at DESC LIMIT 1",
        tenant_id=tenant_id,
    )
    frame = await tx.one(
        "SELECT frame_uuid, captured_at, epoch_id, camera_key FROM frames "
        "WHERE tenant_id = :tenant_id AND infer_bytes IS NOT NULL ORDER BY captured_at DESC LIMIT 1",
        tenant_id=tenant_id,
    )
    assert event is not None
    assert frame is not None
    return event["event_uuid"], frame["frame_uuid"], frame["captured_at"], frame["epoch_id"], frame["camera_key"]


async def places_of(tx: Tx, tenant_id: int) -> tuple[tuple[int, int], ...]:
    rows = await tx.all("SELECT site_id, camera_key FROM cameras WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    return tuple((row["site_id"], row["camera_key"]) for row in rows)
