"""The routes that change something and keep no Idempotency-Key, each with its reason.

A route that writes either takes a key (`repeat` where it is declared) or is in this table; the application can't be
built with one that is in neither. SAME: sent again it ends where it ended before, so a key is not needed and is not
looked at. REFUSED: a repeat is another request and a key could not be kept, so one that carries a key is refused
instead of done with a promise that is not held.
"""

from camserver.services.web.once import Repeat

_NOBODY = "whoever sends it is not signed in, and keys are each caller's own"

UNKEYED: dict[tuple[str, str], tuple[Repeat, str]] = {
    ("POST", "/api/audit/verify"): (Repeat.SAME, "it only looks"),
    ("POST", "/api/imports"): (Repeat.SAME, "a camera that is there already is not added again, and what is left is"),
    ("POST", "/api/media/link"): (Repeat.SAME, "another link to the same is worth no more than the first"),
    ("POST", "/api/modal/lease/{lease_id}/heartbeat"): (Repeat.SAME, "a viewing is kept up to the same end"),
    ("DELETE", "/api/modal/lease/{lease_id}"): (Repeat.SAME, "a viewing that is over is no error"),
    ("POST", "/api/password-links/look"): (Repeat.SAME, "it only looks"),
    ("POST", "/api/push/subscriptions"): (Repeat.SAME, "the same browser again replaces itself"),
    ("POST", "/api/scoring/sheets/{sheet_uuid}/parts/{number}"): (Repeat.SAME, "a part is known by its number"),
    ("DELETE", "/api/session"): (Repeat.SAME, "who is signed out stays so"),
    ("POST", "/api/setup/link"): (Repeat.SAME, "the newest link works, and the repeat answers with it"),
    ("POST", "/v1/streams/stop"): (Repeat.SAME, "a viewing that is over is no error"),
    ("POST", "/api/session"): (Repeat.REFUSED, _NOBODY),
    ("POST", "/api/setup"): (Repeat.REFUSED, _NOBODY),
    ("POST", "/api/password-links/use"): (Repeat.REFUSED, _NOBODY),
    ("POST", "/api/credentials/rotate"): (Repeat.REFUSED, "it is a step of a longer way, told by its cursor"),
    ("POST", "/api/modal/lease"): (
        Repeat.REFUSED,
        "a viewing lives by its heartbeats, an answer of before may be over",
    ),
    ("POST", "/v1/streams/start"): (
        Repeat.REFUSED,
        "a viewing lives by its heartbeats, an answer of before may be over",
    ),
}
