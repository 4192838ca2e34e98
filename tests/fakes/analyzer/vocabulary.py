"""Where the fake keeps its vocabulary: a file, so that it survives a restart as the contract wants."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stored:
    schema_version: str
    schema: Mapping[str, object]
    received_at: str  # ISO 8601, UTC


class VocabularyFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.stored = Stored(**json.loads(path.read_text())) if path.exists() else None

    def put(self, stored: Stored) -> None:
        draft = self._path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(asdict(stored), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        self.stored = stored

    def forget(self) -> None:
        """As an analyzer that was set up anew."""
        self._path.unlink(missing_ok=True)
        self.stored = None
