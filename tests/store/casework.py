"""Evidence for tests of cases and retention: frames, events and clips at any time, and what is left of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import uuid_utils

from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.keeping import DAY_MS
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, case_items, cases
from camserver.store.cases import CaseChange
from tests.store.scenery import NOW_MS, Scene, furnish

GRACE_DAYS = 7


@dataclass(slots=True)
class Evidence:
    """One tenant's cameras and what they left."""

    store: Store
    scene: Scene
    seq: int = 0
    objects: dict[str, int] = field(default_factory=dict)

    @staticmethod
    async def gather(store: Store, cameras: int = 2) -> "Evidence":
        return Evidence(store, await furnish(store, cameras, now_ms=NOW_MS - 4000 * DAY_MS))

    @property
    def somebody(self) -> Principal:
        return Principal(self.scene.tenant_id, None, Role.TENANT_ADMIN)

    async def frame(self, at_ms: int, camera: int = 0, **changes: object) -> int:
        """A frame with both pictures; answers its key."""
        self.seq += 1
        values: dict[str, object] = {
            "frame_uuid": str(uuid_utils.uuid7()),
            "tenant_id": self.scene.tenant_id,
            "site_id": self.scene.site_id,
            "camera_key": self.scene.camera_keys[camera],
            "generation": 1,
            "seq": self.seq,
            "captured_at": at_ms,
            "worker_at": at_ms,
            "received_at": at_ms,
            "collector_status": "ok",
            "verdict": "analyze",
            "epoch_id": self.scene.epoch_id,
            "infer_bytes": 100,
            "full_bytes": 500,
        }
        return await self.store.write(insert, "frames", "frame_id", {**values, **changes})

    async def event(self, at_ms: int, camera: int = 0, frames: int = 1, **changes: object) -> int:
        """A closed event with frames a second apart, the first its best, a tag and a clip; answers its key."""
        uuid = str(uuid_utils.uuid7())
        last_at = at_ms + (frames - 1) * 1000
        common: dict[str, object] = {
            "tenant_id": self.scene.tenant_id,
            "site_id": self.scene.site_id,
            "camera_key": self.scene.camera_keys[camera],
            "start_at": at_ms,
            "last_seen_at": last_at,
            "created_at": at_ms,
            "updated_at": at_ms,
        }
        incident_id = await self.store.write(insert, "incidents", "incident_id", {"incident_uuid": uuid, **common})
        values = {
            "event_uuid": uuid,
            "incident_id": incident_id,
            "state": "closed",
            "end_at": last_at,
            "primary_event": "human",
            "retention_class": "normal",
            "frame_count": frames,
            **common,
        }
        event_id = await self.store.write(insert, "events", "event_id", {**values, **changes})
        own = {"retention_class": changes.get("retention_class", "normal"), "detected": 1, "analyzed": 1}
        keys = [await self.frame(at_ms + number * 1000, camera, event_id=event_id, **own) for number in range(frames)]
        await self.store.write(run, _LINK, {"event_id": event_id, "best": keys[0], "incident_id": incident_id})
        await self.store.write(run, _LINK_INCIDENT, {"event_id": event_id, "incident_id": incident_id})
        tag = {"event_id": event_id, "tag_id": "human.one", "tag_group": "notify_safe", "start_at": at_ms}
        keyed = {"tenant_id": common["tenant_id"], "camera_key": common["camera_key"]}
        await self.store.write(run, _insert_text("event_tags", {**tag, **keyed}), {**tag, **keyed})
        return event_id

    async def clip(self, event_id: int, at_ms: int, camera: int = 0) -> int:
        values = {
            "clip_uuid": str(uuid_utils.uuid7()),
            "tenant_id": self.scene.tenant_id,
            "camera_key": self.scene.camera_keys[camera],
            "event_id": event_id,
            "state": "ready",
            "object_key": f"e{self.scene.epoch_id}/t1/errands/d1/{event_id}.ab.mp4",
            "object_bytes": 4000,
            "epoch_id": self.scene.epoch_id,
            "begin_at": at_ms - 5000,
            "end_at": at_ms + 10_000,
            "codec": "h264",
            "width": 640,
            "height": 360,
            "created_at": at_ms,
        }
        return await self.store.write(insert, "clips", "clip_id", values)

    async def case(self, *items: tuple[ItemKind, int]) -> str:
        made = await self.store.as_(self.somebody).write(cases.create, "a case", "", NOW_MS)
        for kind, key in items:
            await self.add(made.case_uuid, kind, key)
        return made.case_uuid

    async def add(self, case_uuid: str, kind: ItemKind, key: int) -> bool:
        uuid = await self.uuid(kind, key)
        return await self.store.as_(self.somebody).write(case_items.add, case_uuid, kind, uuid, "", NOW_MS)

    async def take_out(self, case_uuid: str, kind: ItemKind, key: int, now_ms: int = NOW_MS) -> None:
        uuid = await self.uuid(kind, key)
        scoped = self.store.as_(self.somebody)
        await scoped.write(case_items.remove, case_uuid, kind, uuid, GRACE_DAYS, "", now_ms)

    async def change(
        self, case_uuid: str, state: CaseState | None = None, hold: bool | None = None, now_ms: int = NOW_MS
    ) -> None:
        """Changes a case and lets its items follow, as the web service does."""
        scoped = self.store.as_(self.somebody)
        changed = await scoped.write(cases.change, case_uuid, CaseChange(None, hold, state), "", now_ms)
        after: int | None = 0
        while after is not None:
            after = await scoped.write(case_items.settle, changed.case_id, after, GRACE_DAYS, now_ms)

    async def uuid(self, kind: ItemKind, key: int) -> str:
        sql = (
            "SELECT frame_uuid AS uuid FROM frames WHERE frame_id = :key"
            if kind is ItemKind.FRAME
            else "SELECT event_uuid AS uuid FROM events WHERE event_id = :key"
        )
        [found] = await self.rows(sql, key=key)
        return str(found["uuid"])

    async def rows(self, sql: str, **params: object) -> list[dict[str, Any]]:
        return await self.store.read(select, sql, params)

    async def classes(self) -> dict[int, str]:
        found = await self.rows("SELECT frame_id, retention_class FROM frames ORDER BY frame_id")
        return {row["frame_id"]: row["retention_class"] for row in found}

    async def garbage(self) -> list[str]:
        return [row["object_key"] for row in await self.rows("SELECT object_key FROM garbage ORDER BY garbage_id")]


_LINK = "UPDATE events SET best_frame_id = :best WHERE event_id = :event_id AND incident_id = :incident_id"
_LINK_INCIDENT = "UPDATE incidents SET last_event_id = :event_id WHERE incident_id = :incident_id"


def _insert_text(table: str, values: dict[str, object]) -> str:
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})"


async def insert(tx: Tx, table: str, key: str, values: dict[str, object]) -> int:
    return await tx.insert(f"{_insert_text(table, values)} RETURNING {key}", **values)


async def run(tx: Tx, sql: str, params: Mapping[str, object]) -> int:
    return await tx.run(sql, **params)


async def select(tx: Tx, sql: str, params: Mapping[str, object]) -> list[dict[str, Any]]:
    found: Any = await tx.all(sql, **params)  # each driver has its own kind of row; all of them make a dict
    return [dict(row) for row in found]
