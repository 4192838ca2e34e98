"""What the workers were told: their own account of every acknowledged look, read from their logs.

A worker writes a line when the server's `recorded` reply has come and before it drops the look, straight to a file,
so the account survives kill -9. It is independent of the database, which is what it is compared with.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = "look_recorded"
REFUSED = "look refused for good and set aside"
DROPPED = "look dropped: no room"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One `recorded` reply."""

    camera_id: str
    generation: int
    seq: int
    frame_uuid: str
    standing: str  # live or late

    @property
    def identity(self) -> tuple[str, int, int]:
        return self.camera_id, self.generation, self.seq


@dataclass(slots=True)
class _Followed:
    worker: str
    read_bytes: int = 0


@dataclass(slots=True)
class Ledger:
    """Follows the log files of all workers, also of those that were killed."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    # Lines about looks that were made and given up: refused by the server, or dropped for want of room.
    given_up: list[str] = field(default_factory=list)
    # camera_id -> the highest generation that was acknowledged, and to whom.
    holders: dict[str, tuple[int, str]] = field(default_factory=dict)
    _followed: dict[Path, _Followed] = field(default_factory=dict)

    def follow(self, worker: str, log_file: Path) -> None:
        self._followed.setdefault(log_file, _Followed(worker))

    def held_by(self, worker: str) -> frozenset[str]:
        """The cameras of which the newest generation was last acknowledged to this worker."""
        return frozenset(camera_id for camera_id, (_, holder) in self.holders.items() if holder == worker)

    def catch_up(self) -> int:
        """Reads what came since; how many acknowledgements there are by now."""
        for path, followed in self._followed.items():
            self._read(path, followed)
        return len(self.acknowledged)

    def _read(self, path: Path, followed: _Followed) -> None:
        with path.open("rb") as file:
            file.seek(followed.read_bytes)
            data = file.read()
        # A line that is still being written is read the next time.
        whole = data[: data.rfind(b"\n") + 1]
        followed.read_bytes += len(whole)
        for line in whole.splitlines():
            if RECORDED.encode() in line:
                self._note(followed.worker, json.loads(line))
            elif REFUSED.encode() in line or DROPPED.encode() in line:
                self.given_up.append(line.decode(errors="replace"))

    def _note(self, worker: str, line: dict[str, object]) -> None:
        if line.get("event") != RECORDED:
            return
        generation, seq = line["generation"], line["seq"]
        assert isinstance(generation, int)
        assert isinstance(seq, int)
        camera_id = str(line["camera_id"])
        one = Acknowledged(camera_id, generation, seq, str(line["frame_uuid"]), str(line["standing"]))
        self.acknowledged.append(one)
        if generation >= self.holders.get(camera_id, (0, ""))[0]:
            self.holders[camera_id] = (generation, worker)
