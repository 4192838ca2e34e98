"""What the change feed tells of. The table of kinds in docs/ref/api.md says what each means."""

from typing import Literal, get_args

ChangeKind = Literal[
    "camera",
    "case",
    "delivery",
    "event",
    "frame",
    "incident",
    "look",
    "receiver",
    "retention",
    "session",
    "site",
    "suggestion",
    "summary",
]
CHANGE_KINDS: frozenset[str] = frozenset(get_args(ChangeKind))
