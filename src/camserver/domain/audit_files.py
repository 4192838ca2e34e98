"""The audit log as a file that can be checked anywhere: one JSON object a line, a seal before its entries.

The rules of seals are in domain/audit.py. Files are read and written elsewhere; here are their lines.
"""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from camserver.base.errors import BadInput
from camserver.domain.audit import Finding, LoggedEntry, Seal, SealKey, Wrong, check_batch, genesis

FILE_FORMAT = "camserver-audit-1"
LINE_MAX_CHARS = 200_000
# Details that are no JSON stand beside the empty ones as the text that they are.
_UNREADABLE = "unreadable_details"


def file_head(tenant: str, tenant_id: int, made_at: int) -> str:
    return _line({"format": FILE_FORMAT, "tenant": tenant, "tenant_id": tenant_id, "made_at": made_at})


def seal_line(one: Seal) -> str:
    return _line({"seal": asdict(one)})


def entry_line(one: LoggedEntry, who: str = "") -> str:
    """`who` is for people who read the file; it is not sealed."""
    shown = asdict(one)
    try:
        shown["details"] = None if one.details is None else json.loads(one.details)
    except (ValueError, RecursionError):
        shown["details"], shown[_UNREADABLE] = None, one.details
    return _line({"entry": shown, "who": who})


def file_end(seals: int, entries: int) -> str:
    """Without this line a file was cut off."""
    return _line({"end": {"seals": seals, "entries": entries}})


def _line(value: dict[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a pair of UTF-16 is JSON, and in no file.
    return (text if _is_text(text) else json.dumps(value)) + "\n"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class FileCheck:
    """Checks a file line by line."""

    key: SealKey | None
    now_ms: int
    tenant: str = ""
    tenant_id: int | None = None
    seals: int = 0
    entries: int = 0
    ended: bool = False
    _seal: Seal | None = None
    _entries: list[LoggedEntry] | None = None
    _hash: str = ""

    @property
    def last_hash(self) -> str:
        return self._hash if self.seals else ""

    def take(self, line: str) -> tuple[Finding, ...]:
        """What the line completes; BadInput when it is no line of such a file."""
        if self.ended:
            # Nothing there is held against any seal, so it must not pass for a part of what was checked.
            raise BadInput("the export ends before this line, so somebody added it and what follows; take them out")
        try:
            given = json.loads(line)
            if self.tenant_id is None:
                return self._begin(given)
            if "seal" in given:
                return self._next(_seal_of(given["seal"]))
            if "entry" in given:
                return self._entry(_entry_of(given["entry"]))
            if "end" in given:
                return self._finish(given["end"])
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise BadInput("this is no line of an export of the audit log; was the file changed or cut off?")

    def _begin(self, given: Any) -> tuple[Finding, ...]:
        if given["format"] != FILE_FORMAT:
            raise ValueError
        self.tenant, self.tenant_id = str(given["tenant"]), int(given["tenant_id"])
        self._hash = genesis(self.tenant_id)
        return ()

    def _entry(self, entry: LoggedEntry) -> tuple[Finding, ...]:
        if self._entries is None:
            raise ValueError("an entry without a seal before it")
        self._entries.append(entry)
        return ()

    def _next(self, following: Seal | None) -> tuple[Finding, ...]:
        wrong: tuple[Finding, ...] = ()
        expected = self.seals + 1
        if self._seal is not None:
            wrong = check_batch(self._seal, self._entries or [], self._hash, self.key, self.now_ms)
            self.entries += len(self._entries or ())
            self._hash = self._seal.hash
        if following is None:
            self._seal = self._entries = None
            return wrong
        if following.tenant_id != self.tenant_id or following.batch_no != expected:
            wrong = (*wrong, Finding(Wrong.SEAL_MISSING, expected))
        self._seal, self._entries = following, []
        self.seals = following.batch_no
        return wrong

    def _finish(self, end: Any) -> tuple[Finding, ...]:
        wrong = self._next(None)
        if end["seals"] != self.seals:
            wrong = (*wrong, Finding(Wrong.SEAL_MISSING, self.seals + 1))
        self.ended = True
        return wrong


_SEAL_TYPES = {one.name: one.type for one in fields(Seal)}


def _seal_of(given: dict[str, Any]) -> Seal:
    # What was written before prunings were signed has no such fields.
    given = {"pruned_key_id": "", "pruned_mac": "", **given}
    if given.keys() != _SEAL_TYPES.keys():
        raise ValueError("not a seal")
    for name, value in given.items():
        kind = str if _SEAL_TYPES[name] is str else int
        if not isinstance(value, kind) and not (name == "pruned_at" and value is None):
            raise ValueError(name)
    return Seal(**given)


def _entry_of(given: dict[str, Any]) -> LoggedEntry:
    details = given["details"]
    written = given.pop(_UNREADABLE, None if details is None else json.dumps(details))
    return LoggedEntry(**{**given, "details": written})
