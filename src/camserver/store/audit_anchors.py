"""What this machine remembers of the chains of the audit log, outside the database: the last seal it made of each.

Without it, whoever can write to the database could take the newest seals away with their entries, and what is left
would still be a whole chain. A small file in the data folder, replaced as a whole.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from camserver.base import folders
from camserver.base.errors import DataUnusable
from camserver.domain.audit import Seal

FILE_NAME = "audit-anchors.json"


@dataclass(frozen=True, slots=True)
class Anchor:
    batch_no: int
    hash: str

    def is_held_by(self, found: Seal | None) -> bool:
        """Whether the chain still has the seal; `found` is what it has under that number."""
        return found is not None and (found.batch_no, found.hash) == (self.batch_no, self.hash)


def read(data_dir: Path) -> dict[int, Anchor]:
    """By tenant. Nothing where no seal was made on this machine; DataUnusable where the file can't be read, since it
    may hold what nobody else remembers."""
    path = data_dir / FILE_NAME
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        return {int(tenant): Anchor(int(one["batch_no"]), str(one["hash"])) for tenant, one in given.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataUnusable(
            f"{path} can't be read ({type(error).__name__}: {error}); find out what damaged it, and move it away"
        ) from error


def write(data_dir: Path, anchors: Mapping[int, Anchor]) -> None:
    """Complete or not at all, durable on return."""
    path = data_dir / FILE_NAME
    draft = path.with_name(f".{FILE_NAME}.new")
    text = json.dumps({str(tenant): {"batch_no": one.batch_no, "hash": one.hash} for tenant, one in anchors.items()})
    with draft.open("w", encoding="utf-8") as file:
        os.chmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folders.sync(path.parent)
