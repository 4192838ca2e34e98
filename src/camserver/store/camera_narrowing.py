"""What a list of cameras is narrowed by, as conditions of its statement: `c` are cameras, `s` sites, `h` states."""

import re
from dataclasses import dataclass

_LIKE_SIGNS = re.compile("[!%_]")


@dataclass(frozen=True, slots=True)
class CameraFilter:
    """What is not set does not narrow; several sites are alternatives."""

    sites: tuple[str, ...] = ()
    enabled: bool | None = None
    health: str | None = None  # up, down, unknown
    text: str | None = None  # a part of the id or the name, whatever its case

    def narrowing(self) -> tuple[str, dict[str, object]]:
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
            conditions += " AND (LOWER(c.camera_id) LIKE :like ESCAPE '!' OR LOWER(c.name) LIKE :like ESCAPE '!')"
            values["like"] = f"%{_LIKE_SIGNS.sub(_escaped, self.text.lower())}%"
        return conditions, values


def _escaped(found: re.Match[str]) -> str:
    return f"!{found[0]}"


EVERY = CameraFilter()
