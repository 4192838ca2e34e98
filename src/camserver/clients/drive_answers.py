"""What Google Drive's answers mean for a delivery. Pure; asking is done by `drive.py`."""

import re
from dataclasses import dataclass
from typing import Any, Final

from camserver.clients.outgoing import Answered
from camserver.domain.deliveries import DeliveryError, Trouble

_REASON: Final = re.compile(r"[A-Za-z]{1,64}")
_FILE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_RANGE: Final = re.compile(r"(?:bytes=)?0-([0-9]{1,12})")

# Too fast, or too much for one day.
_HURRIED: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "sharingRateLimitExceeded"})
_SPENT: Final = frozenset({"dailyLimitExceeded", "dailyLimitExceededUnreg", "quotaExceeded"})
_FULL: Final = frozenset(
    {
        "storageQuotaExceeded",
        "teamDriveFileLimitExceeded",
        "numChildrenInNonRootLimitExceeded",
        "activeItemCreationLimitExceeded",
        "teamDriveHierarchyTooDeep",
    }
)
SPENT_PAUSE_SEC: Final = 1800.0
FULL_PAUSE_SEC: Final = 3600.0


@dataclass(frozen=True, slots=True)
class DriveFile:
    """A file as Drive tells of it. Hashes come a little later than the file; None = not told."""

    file_id: str
    size_bytes: int | None
    sha256: str | None
    trashed: bool = False

    def is_copy(self, size_bytes: int, sha256: str) -> bool:
        return self.size_bytes in (None, size_bytes) and self.sha256 in (None, sha256)


def reason_of(answer: Answered) -> str:
    """The word that names the error, e.g. storageQuotaExceeded; '' when there is none."""
    told = answer.json()
    error = told.get("error") if isinstance(told, dict) else None
    errors = error.get("errors") if isinstance(error, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    reason = first.get("reason") if isinstance(first, dict) else None
    return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else ""


def trouble(who: str, answer: Answered) -> DeliveryError:
    """The error that an answer other than a success stands for. A missing folder is told apart by the caller."""
    reason = reason_of(answer)
    said = f"{answer.status} {reason}".strip()
    if reason in _FULL:
        return DeliveryError(
            Trouble.RETRY,
            f"{who}: Google Drive has no room for more ({said}). A service account has no storage of its own: use a "
            "folder of a shared drive, or free some space there",
            FULL_PAUSE_SEC,
        )
    if reason in _SPENT:
        return DeliveryError(
            Trouble.RETRY, f"{who}: Google's quota of requests is used up ({said}); it goes on later", SPENT_PAUSE_SEC
        )
    if reason in _HURRIED or answer.status in (408, 429) or answer.status >= 500:
        return DeliveryError(Trouble.RETRY, f"{who}: Google Drive answered {said}", answer.retry_after_sec)
    if answer.status == 403:
        return DeliveryError(
            Trouble.FAILED,
            f"{who}: Google Drive does not allow it ({said}); give the service account the role of a content manager "
            "in the shared drive, and enable the Google Drive API in its project",
        )
    if answer.status == 401:
        return DeliveryError(Trouble.FAILED, f"{who}: Google Drive does not take a new token ({said})")
    if 300 <= answer.status < 400:
        return DeliveryError(Trouble.FAILED, f"{who}: Google Drive answered {said}, which leads elsewhere")
    kind = Trouble.REFUSED if answer.status == 400 else Trouble.FAILED
    return DeliveryError(kind, f"{who}: Google Drive answered {said}")


def file_of(told: Any) -> DriveFile | None:
    """A file in an answer; None when it makes no sense."""
    if not isinstance(told, dict):
        return None
    file_id, size, sha256 = told.get("id"), told.get("size"), told.get("sha256Checksum")
    if not isinstance(file_id, str) or not _FILE_ID.fullmatch(file_id):
        return None
    # Drive writes sizes as texts.
    size_bytes = int(size) if isinstance(size, str) and size.isascii() and size.isdigit() else None
    return DriveFile(
        file_id, size_bytes, sha256 if isinstance(sha256, str) else None, bool(told.get("trashed", False))
    )


def received_bytes(answer: Answered, total_bytes: int) -> int | None:
    """How much of an upload a 308 says has arrived; None when it makes no sense.

    An upload that is told to have arrived whole is not one that is done: then Drive would have answered 200.
    """
    told = answer.headers.get("Range")
    if told is None:
        return 0
    found = _RANGE.fullmatch(told.strip())
    if found is None:
        return None
    received = int(found.group(1)) + 1
    return received if received < total_bytes else None
