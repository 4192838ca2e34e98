"""The one tree of errors, ordered by what the caller should do.

    CamError
    ├── Retry                 try again later; nothing is known to be wrong with the request
    │   ├── StoreBusy         no connection within the time-out (HTTP 503)
    │   ├── StoreUnavailable  the database or its writer is away; the outcome of a write is unknown
    │   ├── TooManyTries      asked too often; wait as long as it says (HTTP 429)
    │   └── Unavailable       another service is away, slow or overloaded
    ├── Reject                the request is wrong and stays wrong
    │   ├── BadInput          malformed or out of bounds (HTTP 400)
    │   ├── Unauthenticated   nobody is signed in (HTTP 401)
    │   ├── Forbidden         signed in, not allowed (HTTP 403)
    │   └── NotFound          no such thing within the caller's reach (HTTP 404)
    ├── Conflict              somebody else was first; look again and decide again (HTTP 409)
    │   ├── FenceLost         the lock or lease this write was made under is gone
    │   ├── VersionConflict   the row changed since it was read
    │   └── EpochEnded        the writer's epoch was ended; open a new one and write the object again
    └── Fatal                 the program can't go on; the message says what a person must do
        ├── BadSettings       the configuration is wrong
        ├── PortUnusable      a port to listen on is in use or not allowed
        ├── DataUnusable      the data folder is read-only, full or not permitted
        ├── DataOwned         another running camserver owns the data folder
        ├── StoreTooNew       the database was made by a newer camserver
        ├── StoreTooOld       the database needs an upgrade that was not asked for
        ├── UpgradeFailed     the upgrade of the database, or the backup before it, failed
        ├── ModelUnusable     the analyzer's model is missing or not one it can run
        ├── CheckFailed       a check ran to its end and found something wrong
        └── Bug               a broken invariant: report it

Foreign errors are mapped to this tree at the edge (store, clients, objects). A message names the thing, the
cause and the next step. `code` is stable and meant for machines; `details` may go to the caller and so never
holds a secret.
"""

from collections.abc import Mapping
from typing import ClassVar


class CamError(Exception):
    """The root. Raise a leaf, not this."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, object] = details

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from the SQLite writer's process to the server's; keyword details must survive that.
        return (_rebuild, (type(self), self.message, dict(self.details)))


def _rebuild(kind: type[CamError], message: str, details: dict[str, object]) -> CamError:
    return kind(message, **details)


class Retry(CamError):
    code = "retry"
    http_status = 503


class StoreBusy(Retry):
    code = "store_busy"


class StoreUnavailable(Retry):
    code = "store_unavailable"


class TooManyTries(Retry):
    code = "too_many_tries"
    http_status = 429


class Unavailable(Retry):
    code = "unavailable"


class Reject(CamError):
    code = "rejected"
    http_status = 400


class BadInput(Reject):
    code = "bad_input"


class Unauthenticated(Reject):
    code = "unauthenticated"
    http_status = 401


class Forbidden(Reject):
    code = "forbidden"
    http_status = 403


class NotFound(Reject):
    code = "not_found"
    http_status = 404


class Conflict(CamError):
    code = "conflict"
    http_status = 409


class FenceLost(Conflict):
    code = "fence_lost"


class VersionConflict(Conflict):
    code = "version_conflict"


class EpochEnded(Conflict):
    code = "epoch_ended"


class Fatal(CamError):
    code = "fatal"


class BadSettings(Fatal):
    code = "bad_settings"


class PortUnusable(Fatal):
    code = "port_unusable"


class DataUnusable(Fatal):
    code = "data_unusable"


class DataOwned(Fatal):
    code = "data_owned"


class StoreTooNew(Fatal):
    code = "store_too_new"


class StoreTooOld(Fatal):
    code = "store_too_old"


class UpgradeFailed(Fatal):
    code = "upgrade_failed"


class ModelUnusable(Fatal):
    code = "model_unusable"


class CheckFailed(Fatal):
    code = "check_failed"


class Bug(Fatal):
    code = "bug"
