"""What a list of cameras is narrowed by, as conditions of its statement: `c` are cameras, `s` sites, `h` states."""

from dataclasses import dataclass

from camserver.domain.texts import fold
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class CameraFilter:
    """What is not set does not narrow; several sites are alternatives."""

    sites: tuple[str, ...] = ()
    enabled: bool | None = None
    health: str | None = None  # up, down, unknown
    text: str | None = None  # a part of the id or the name, whatever its case and width

    async def narrowing(self, tx: Scoped) -> tuple[str, dict[str, object]]:
        """As conditions and their values."""
        conditions, values = "", dict[str, object]()
        if self.sites:
            conditions += " AND s.name IN (:sites...)"
            values["sites"] = self.sites
        if self.enabled is not None:
            conditions += " AND c.enabled = :enabled"
            values["enabled"] = int(self.enabled)
        if self.health is not None:
            conditions += " AND COALESCE(h.health, 'unknown') = :health"
            values["health"] = self.health
        if self.text is not None:
            conditions += " AND c.camera_key IN (:named...)"
            values["named"] = await _named(tx, self.text)
        return conditions, values


async def _named(tx: Scoped, text: str) -> list[int]:
    """Cameras with this part in their id or name. The databases are not asked: which letters are the same in another
    case differs between them, and SQLite, and PostgreSQL in some locales, know those of ASCII only."""
    part = fold(text)
    rows = await tx.all(
        "SELECT camera_key, camera_id, name FROM cameras WHERE tenant_id = :tenant_id AND deleted_at IS NULL "
        "AND IN_REACH()"
    )
    return [row["camera_key"] for row in rows if part in fold(row["camera_id"]) or part in fold(row["name"])]


EVERY = CameraFilter()
