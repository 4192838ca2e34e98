"""The readiness board of a process: named checks that services set and clear, read by /healthz and /readyz.

A check is registered before its service starts and is not ready until the service says so. The board decides
nothing; it only remembers, in this process.
"""

from collections.abc import Mapping

from camserver.base.errors import Bug
from camserver.base.secrets import scrub

CHECKS_MAX = 64
WHY_MAX_CHARS = 300


class Ready:
    """Name → `None` when it is ready, or why it is not."""

    def __init__(self) -> None:
        self._why_not: dict[str, str | None] = {}

    def expect(self, name: str, why_not: str = "starting") -> None:
        """Registers a check; the process is not ready until it is set. Registering twice changes nothing."""
        if name not in self._why_not:
            self.clear(name, why_not)

    def set(self, name: str) -> None:
        self._put(name, None)

    def clear(self, name: str, why_not: str) -> None:
        """The check fails from now on. `why_not` is shown to whoever asks, so it is scrubbed and bounded."""
        self._put(name, scrub(why_not)[:WHY_MAX_CHARS] or "not ready")

    def _put(self, name: str, why_not: str | None) -> None:
        if name not in self._why_not and len(self._why_not) >= CHECKS_MAX:
            raise Bug(f"more than {CHECKS_MAX} readiness checks; {name!r} is one too many")
        self._why_not[name] = why_not

    @property
    def is_ready(self) -> bool:
        """True when there is a check and all of them are set."""
        return bool(self._why_not) and all(why is None for why in self._why_not.values())

    def checks(self) -> Mapping[str, str | None]:
        """A copy, in the order of registration."""
        return dict(self._why_not)
