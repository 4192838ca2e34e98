"""The exit codes of every camserver command, in one table.

Scripts, service managers and `camserver up` itself act on these numbers, so a number never changes its
meaning. `docs/ref/exit-codes.md` is this table; a test keeps the two equal. Which error leads to which code
is decided here as well, and nowhere else.
"""

from enum import IntEnum

from camserver.base.errors import (
    BadSettings,
    CamError,
    CheckFailed,
    Conflict,
    DataOwned,
    DataUnusable,
    ModelUnusable,
    PortUnusable,
    Reject,
    StoreBusy,
    StoreTooNew,
    StoreTooOld,
    StoreUnavailable,
    Unavailable,
    UpgradeFailed,
)


class Exit(IntEnum):
    """How a command ended. `meaning` is one sentence; `restart` says whether trying again can help."""

    meaning: str
    restart: bool

    def __new__(cls, number: int, meaning: str, restart: bool) -> "Exit":
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        member.restart = restart
        return member

    @classmethod
    def of(cls, number: int) -> "Exit | None":
        """The code with this number, if camserver has one."""
        return next((member for member in cls if member == number), None)

    OK = 0, "Done, or stopped as asked.", True
    UNEXPECTED = 1, "An unexpected error; the log holds the traceback.", True
    USAGE = 2, "The command line is wrong: an unknown command, option or value.", False
    WRONG_PYTHON = (
        3,
        "The Python found is too old; said by the set-up, before camserver starts.",
        False,
    )
    BAD_SETTINGS = (
        4,
        "The configuration is wrong: an unknown key, a wrong type, a value out of bounds.",
        False,
    )
    PORT_UNUSABLE = 5, "A port that camserver must listen on is in use or not allowed.", False
    DATA_UNUSABLE = 6, "The data folder can't be used: read-only, no space or not permitted.", False
    DATA_OWNED = 7, "Another running camserver owns the data folder.", False
    STORE_TOO_NEW = 8, "The database was made by a newer camserver than this one.", False
    STORE_AWAY = 9, "The database can't be reached or does not answer.", True
    SERVER_AWAY = 10, "The camserver server can't be reached; is it running?", True
    REFUSED = 11, "The server refused the request: wrong input, not allowed, not found or in conflict.", True
    CHECK_FAILED = 12, "A check ran to its end and found something wrong.", True
    STORE_TOO_OLD = 13, "The database needs `camserver db upgrade` first.", False
    UPGRADE_FAILED = 14, "The upgrade of the database, or the backup before it, failed.", False
    MODEL_UNUSABLE = 15, "The analyzer's model is missing or can't be used.", False


# The first match wins, so a kind stands before its base.
_BY_ERROR: tuple[tuple[type[CamError], Exit], ...] = (
    (BadSettings, Exit.BAD_SETTINGS),
    (PortUnusable, Exit.PORT_UNUSABLE),
    (DataUnusable, Exit.DATA_UNUSABLE),
    (DataOwned, Exit.DATA_OWNED),
    (StoreTooNew, Exit.STORE_TOO_NEW),
    (StoreTooOld, Exit.STORE_TOO_OLD),
    (UpgradeFailed, Exit.UPGRADE_FAILED),
    (ModelUnusable, Exit.MODEL_UNUSABLE),
    (CheckFailed, Exit.CHECK_FAILED),
    (StoreBusy, Exit.STORE_AWAY),
    (StoreUnavailable, Exit.STORE_AWAY),
    (Unavailable, Exit.SERVER_AWAY),
    (Reject, Exit.REFUSED),
    (Conflict, Exit.REFUSED),
)


def exit_of(error: CamError) -> Exit:
    """The exit code that says to a script what `error` says to a person."""
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    return Exit.UNEXPECTED
