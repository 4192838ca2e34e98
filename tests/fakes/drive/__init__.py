"""Google Drive as far as camserver uses it: sign-in, folders, resumable uploads; cut off, full or lying on demand.

async with FakeDrive() as drive:
    drive.fail("put", Cut(after_bytes=1000))
    ... drive.url, drive.key_file, drive.root_id ...
"""

from tests.fakes.drive.faults import Answer, Corrupted, Cut, Elsewhere, Lie, Lost, SessionGone, Terse, Unheard, Wait
from tests.fakes.drive.server import FakeDrive

__all__ = [
    "Answer",
    "Corrupted",
    "Cut",
    "Elsewhere",
    "FakeDrive",
    "Lie",
    "Lost",
    "SessionGone",
    "Terse",
    "Unheard",
    "Wait",
]
