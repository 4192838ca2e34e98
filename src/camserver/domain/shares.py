"""Shares: an address that opens one event or one frame to whoever has it, until it ends or is taken back.

A share never opens more than its maker may see at that moment, and nothing of a case. Rules only.
"""

from enum import StrEnum
from typing import Final

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.people import Permission, Principal

# What a page shows: the best picture, and so many of the event's others.
PICTURES_MAX: Final = 25
# Of a tenant, that may open something.
SHARES_MAX: Final = 5_000
TTL_MAX_SEC: Final = 366 * 86_400
HOUR_MS: Final = 3_600_000
# A signed media link can't be taken back, so whoever may not share makes none that is as good as a share.
UNSHARED_LINK_TTL_MAX_SEC: Final = 3600


class Sharing(StrEnum):
    """Who may share (`media.shares`)."""

    OFF = "off"  # nobody, and what was shared before is closed
    MANAGERS = "managers"  # those who manage cameras
    EVERYBODY = "everybody"  # whoever may see it


def may_share(principal: Principal, sharing: Sharing) -> bool:
    """Asked when a share is made and, of its maker, whenever it is opened."""
    match sharing:
        case Sharing.OFF:
            return False
        case Sharing.MANAGERS:
            return principal.may(Permission.READ) and principal.may(Permission.MANAGE_CAMERAS)
        case Sharing.EVERYBODY:
            return principal.may(Permission.READ)


def require_sharing(principal: Principal, sharing: Sharing) -> None:
    if sharing is Sharing.OFF:
        raise Forbidden("sharing is switched off here (media.shares); ask an administrator", reason="shares_off")
    if not may_share(principal, sharing):
        raise Forbidden(
            "only those who manage cameras may share what they show; ask one of them", reason="shares_of_managers"
        )


def link_ttl_sec(principal: Principal, sharing: Sharing, asked_sec: int | None, usual_sec: int) -> int:
    """How long a signed media link lasts: as long as was asked for, or as usual."""
    if may_share(principal, sharing):
        return asked_sec or usual_sec
    if asked_sec is not None and asked_sec > UNSHARED_LINK_TTL_MAX_SEC:
        raise Forbidden(
            f"a link of somebody who may not share lasts at most {UNSHARED_LINK_TTL_MAX_SEC} s (ttl_sec); ask for "
            "less, or ask somebody who may share",
            reason="link_too_long",
            seconds_max=UNSHARED_LINK_TTL_MAX_SEC,
        )
    return asked_sec or min(usual_sec, UNSHARED_LINK_TTL_MAX_SEC)


def over() -> NotFound:
    """The one answer to whatever opens nothing: nobody learns whether there was a share."""
    return NotFound(
        "this address opens nothing, or what it opened is no longer shared; ask whoever sent it to you",
        reason="share_over",
    )


def no_picture(number: int) -> NotFound:
    """Told to whoever opened the share, and so sees on its page how many there are."""
    return NotFound(
        f"this share has no picture {number}; its pictures may be past their retention, open its page again",
        reason="share_no_picture",
        number=number,
    )


def no_clip() -> NotFound:
    """The same for one frame, whose event is not shared, as for an event without a clip."""
    return NotFound("this share has no film; open its page to see what there is", reason="share_no_clip")
