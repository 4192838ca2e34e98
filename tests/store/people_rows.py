"""Rows that tests of people, cameras and events start from, and ways to read what was written."""

import json
from dataclasses import dataclass

from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, first_start, tenants, users
from camserver.store.first_start import Home
from camserver.store.vocabularies import shipped

NOW_MS = 1_767_225_600_000
HOUR_MS = 3_600_000


async def prepare(store: Store, now_ms: int = NOW_MS) -> Home:
    document = shipped()
    return await store.write(first_start.prepare, document, document.version, now_ms)


def admin_of(tenant_id: int) -> Principal:
    return Principal(tenant_id, None, Role.SYSTEM_ADMIN)


def new_admin(login: str = "owner") -> users.NewUser:
    return users.NewUser(login=login, display_name="Owner", language="en", password_hash="$argon2id$not-checked")


async def add_tenant(tx: Tx, name: str, now_ms: int) -> Home:
    tenant_id = await tenants.ensure(tx, name, now_ms)
    return Home(tenant_id, await tenants.ensure_site(tx, tenant_id, "main", now_ms))


async def add_user(tx: Tx, tenant_id: int, login: str, role: str, password_hash: str | None, now_ms: int) -> int:
    return await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, role, password_hash, language, created_at) "
        "VALUES (:tenant_id, :login, :login, :role, :password_hash, 'en', :now_ms) RETURNING user_id",
        tenant_id=tenant_id,
        login=login,
        role=role,
        password_hash=password_hash,
        now_ms=now_ms,
    )


async def disable_user(tx: Tx, login: str) -> None:
    await tx.run("UPDATE users SET disabled = 1 WHERE login = :login", login=login)


@dataclass(frozen=True, slots=True)
class FrameRow:
    tenant_id: int
    camera_id: str
    captured_at: int
    frame_uuid: str
    status: str = "ok"
    epoch_id: int | None = 1
    infer_bytes: int | None = 100
    full_bytes: int | None = None
    event_id: int | None = None
    retention_class: str = "normal"
    severity: int = 0
    result_json: str | None = None
    tags: tuple[tuple[str, str], ...] = ()  # (tag, group)
    letterbox: tuple[int, int, int, int] | None = None  # top, left, bottom, right


async def add_frame(tx: Tx, frame: FrameRow) -> int:
    camera = await tx.one(
        "SELECT camera_key, site_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        tenant_id=frame.tenant_id,
        camera_id=frame.camera_id,
    )
    assert camera is not None
    top, left, bottom, right = frame.letterbox or (None, None, None, None)
    frame_id = await tx.insert(
        "INSERT INTO frames (frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, worker_at, "
        "received_at, collector_status, epoch_id, infer_bytes, full_bytes, event_id, retention_class, severity, "
        "result_json, letterbox, letterbox_top, letterbox_left, letterbox_bottom, letterbox_right) VALUES "
        "(:frame_uuid, :tenant_id, :site_id, :camera_key, 1, :captured_at, :captured_at, :captured_at, :captured_at, "
        ":status, :epoch_id, :infer_bytes, :full_bytes, :event_id, :retention_class, :severity, :result_json, "
        ":boxed, :top, :left_, :bottom, :right_) RETURNING frame_id",
        frame_uuid=frame.frame_uuid,
        tenant_id=frame.tenant_id,
        site_id=camera["site_id"],
        camera_key=camera["camera_key"],
        captured_at=frame.captured_at,
        status=frame.status,
        epoch_id=frame.epoch_id,
        infer_bytes=frame.infer_bytes,
        full_bytes=frame.full_bytes,
        event_id=frame.event_id,
        retention_class=frame.retention_class,
        severity=frame.severity,
        result_json=frame.result_json,
        boxed=int(frame.letterbox is not None),
        top=top,
        left_=left,
        bottom=bottom,
        right_=right,
    )
    await tx.many(
        "INSERT INTO frame_tags (frame_id, tag_id, tenant_id, tag_group) "
        "VALUES (:frame_id, :tag_id, :tenant_id, :tag_group)",
        [
            {"frame_id": frame_id, "tag_id": tag_id, "tenant_id": frame.tenant_id, "tag_group": group}
            for tag_id, group in frame.tags
        ],
    )
    return frame_id


@dataclass(frozen=True, slots=True)
class EventRow:
    """What an event of a test differs in from a closed one in which somebody was seen for a moment."""

    state: str = "closed"
    primary_event: str = "human"
    severity_max: int = 0
    last_seen_at: int | None = None
    incident_id: int = 0
    best_frame_id: int | None = None


async def add_event(
    tx: Tx,
    tenant_id: int,
    camera_id: str,
    event_uuid: str,
    start_at: int,
    tags: tuple[tuple[str, str], ...] = (),
    event: EventRow = EventRow(),  # noqa: B008 - frozen
) -> int:
    """An event with its line in the change feed; `tags` are (tag, group)."""
    camera = await tx.one(
        "SELECT camera_key, site_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        tenant_id=tenant_id,
        camera_id=camera_id,
    )
    assert camera is not None
    event_id = await tx.insert(
        "INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, open_key, state, "
        "primary_event, start_at, last_seen_at, severity_max, best_frame_id, retention_class, created_at, "
        "updated_at) VALUES (:event_uuid, :tenant_id, :site_id, :camera_key, :incident_id, :open_key, :state, "
        ":primary_event, :start_at, :last_seen_at, :severity_max, :best_frame_id, 'normal', :start_at, "
        ":start_at) RETURNING event_id",
        event_uuid=event_uuid,
        tenant_id=tenant_id,
        site_id=camera["site_id"],
        camera_key=camera["camera_key"],
        incident_id=event.incident_id,
        open_key=camera["camera_key"] if event.state == "open" else None,
        state=event.state,
        primary_event=event.primary_event,
        start_at=start_at,
        last_seen_at=event.last_seen_at or start_at,
        severity_max=event.severity_max,
        best_frame_id=event.best_frame_id,
    )
    for tag_id, group in tags:
        await tx.run(
            "INSERT INTO event_tags (event_id, tag_id, tenant_id, tag_group, camera_key, start_at) "
            "VALUES (:event_id, :tag_id, :tenant_id, :tag_group, :camera_key, :start_at)",
            event_id=event_id,
            tag_id=tag_id,
            tenant_id=tenant_id,
            tag_group=group,
            camera_key=camera["camera_key"],
            start_at=start_at,
        )
    tx.changed(
        tenant_id=tenant_id,
        kind="event",
        at_ms=start_at,
        site_id=camera["site_id"],
        camera_key=camera["camera_key"],
        object_id=event_id,
    )
    return event_id


async def add_incident(
    tx: Tx, tenant_id: int, camera_id: str, incident_uuid: str, start_at: int, severity_max: int = 0
) -> int:
    camera = await tx.one(
        "SELECT camera_key, site_id FROM cameras WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        tenant_id=tenant_id,
        camera_id=camera_id,
    )
    assert camera is not None
    return await tx.insert(
        "INSERT INTO incidents (incident_uuid, tenant_id, site_id, camera_key, start_at, last_seen_at, severity_max, "
        "created_at, updated_at) VALUES (:incident_uuid, :tenant_id, :site_id, :camera_key, :start_at, :start_at, "
        ":severity_max, :start_at, :start_at) RETURNING incident_id",
        incident_uuid=incident_uuid,
        tenant_id=tenant_id,
        site_id=camera["site_id"],
        camera_key=camera["camera_key"],
        start_at=start_at,
        severity_max=severity_max,
    )


async def execute(tx: Tx, sql: str, params: dict[str, object]) -> None:
    """Any statement, for what a test must bring about by hand."""
    await tx.run(sql, **params)


async def audit_rows(tx: Tx) -> list[tuple[int, str, str, str, dict[str, object] | None]]:
    """(tenant, action, actor, object, details) of every row, oldest first."""
    rows = await tx.all("SELECT * FROM audit_log ORDER BY entry_id")
    return [
        (
            row["tenant_id"],
            row["action"],
            row["actor_id"],
            row["object_id"],
            None if row["details"] is None else json.loads(row["details"]),
        )
        for row in rows
    ]


async def told(store: Store, *actions: str) -> list[dict[str, object] | None]:
    """The details of entries with these actions, oldest first."""
    return [row[4] for row in await store.read(audit_rows) if row[1] in actions]


async def count_rows(tx: Tx, table: str) -> int:
    row = await tx.one(f"SELECT COUNT(*) AS n FROM {table}")
    assert row is not None
    return int(row["n"])
