"""Rules of who is told of what (domain/routing.py): as people change them, and as the dispatcher reads them.

People name sites, cameras and receivers by their public ids; rows hold the keys. A camera or receiver that is removed
stays in the rules that name it, so that no rule silently becomes one for everybody or for nobody. A rule decides also
for what it does not name, so only somebody who reaches all sites writes one.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import uuid_utils

from camserver.base.errors import BadInput, Conflict, NotFound
from camserver.domain.routing import Rule, parse_quiet
from camserver.store import audit, tenants
from camserver.store.tx import Row, Scoped, Tx

RULES_MAX = 200
# Where a column is not called as people call what it holds.
_COLUMN_OF = {"sites": "site_ids", "camera_ids": "camera_keys", "receivers": "receiver_ids"}


@dataclass(frozen=True, slots=True)
class RuleValues:
    """A rule as people write it. None stands for all; no receivers at all stand for nobody."""

    name: str
    enabled: bool = True
    sites: tuple[str, ...] | None = None  # names or uuids
    camera_ids: tuple[str, ...] | None = None
    primary_events: tuple[str, ...] | None = None
    min_severity: int = 0
    receivers: tuple[str, ...] | None = None  # uuids; names are understood, too
    quiet: Mapping[str, object] | None = None  # as routing.parse_quiet takes it


_FIELDS = tuple(field.name for field in fields(RuleValues))


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What of a rule is written anew. The rest stays as it is stored, with what it names that is gone."""

    values: RuleValues
    given: frozenset[str]  # names of fields of RuleValues


@dataclass(frozen=True, slots=True)
class RuleSummary:
    rule_uuid: str
    values: RuleValues  # sites by name; what is gone is left out
    gone: int  # how many sites, cameras and receivers it names that are no more
    created_at: int
    updated_at: int


async def listed(tx: Scoped) -> tuple[RuleSummary, ...]:
    """In the order they are tried."""
    rows = await tx.all(f"{_RULES} ORDER BY position, rule_id LIMIT {RULES_MAX}")
    return await _shown(tx, rows)


async def get(tx: Scoped, rule_uuid: str) -> RuleSummary:
    rows = await tx.all(f"{_RULES} AND rule_uuid = :rule_uuid", rule_uuid=rule_uuid)
    if not rows:
        raise _missing(rule_uuid)
    [found] = await _shown(tx, rows)
    return found


async def add(tx: Scoped, values: RuleValues, address: str, now_ms: int) -> RuleSummary:
    """Adds a rule behind the others."""
    tx.principal.require_all_sites()
    columns = await _columns(tx, values)
    await _lock(tx)
    last = await tx.one(
        "SELECT COUNT(*) AS found, MAX(position) AS position FROM notify_rules WHERE tenant_id = :tenant_id"
    )
    if last is not None and last["found"] >= RULES_MAX:
        raise Conflict(f"there are {RULES_MAX} rules already; remove one first", reason="rules_full", most=RULES_MAX)
    position = 0 if last is None or last["position"] is None else last["position"] + 1
    rule_uuid = str(uuid_utils.uuid7())
    await tx.run(_INSERT, rule_uuid=rule_uuid, position=position, now_ms=now_ms, **columns)
    added = await get(tx, rule_uuid)
    await _noted(tx, "notify_rule_added", rule_uuid, _told(added.values, _FIELDS), address, now_ms)
    return added


async def change(tx: Scoped, rule_uuid: str, wanted: RuleChange, address: str, now_ms: int) -> RuleSummary:
    """Writes what is given, column by column, so that of two people who change different things neither undoes the
    other's."""
    tx.principal.require_all_sites()
    found = await get(tx, rule_uuid)
    if not wanted.given:
        return found
    columns = await _columns(tx, wanted.values)
    used = {_COLUMN_OF.get(name, name) for name in wanted.given}
    assigned = ", ".join(f"{name} = :{name}" for name in columns if name in used)
    await tx.run(
        f"UPDATE notify_rules SET {assigned}, updated_at = :now_ms "
        "WHERE tenant_id = :tenant_id AND rule_uuid = :rule_uuid",
        rule_uuid=rule_uuid,
        now_ms=now_ms,
        **{name: value for name, value in columns.items() if name in used},
    )
    changed = await get(tx, rule_uuid)
    details = {"changed": " ".join(sorted(wanted.given)), **_told(changed.values, wanted.given)}
    if changed.values.name != found.values.name:
        details["name_before"] = found.values.name
    await _noted(tx, "notify_rule_changed", rule_uuid, details, address, now_ms)
    return changed


async def remove(tx: Scoped, rule_uuid: str, address: str, now_ms: int) -> None:
    tx.principal.require_all_sites()
    row = await tx.one(
        "SELECT name FROM notify_rules WHERE tenant_id = :tenant_id AND rule_uuid = :rule_uuid FOR UPDATE",
        rule_uuid=rule_uuid,
    )
    if row is None:
        raise _missing(rule_uuid)
    await tx.run(
        "DELETE FROM notify_rules WHERE tenant_id = :tenant_id AND rule_uuid = :rule_uuid", rule_uuid=rule_uuid
    )
    await _noted(tx, "notify_rule_removed", rule_uuid, {"name": row["name"]}, address, now_ms)


async def reorder(tx: Scoped, rule_uuids: tuple[str, ...], address: str, now_ms: int) -> tuple[RuleSummary, ...]:
    """Puts the rules into this order. All of them must be named, so that two people can't undo each other unseen."""
    tx.principal.require_all_sites()
    await _lock(tx)
    rows = await tx.all("SELECT rule_uuid FROM notify_rules WHERE tenant_id = :tenant_id ORDER BY position, rule_id")
    if sorted(row["rule_uuid"] for row in rows) != sorted(rule_uuids):
        raise Conflict(
            "the rules have changed meanwhile; read them again and name each one once", reason="rules_moved"
        )
    await tx.many(
        """
        UPDATE notify_rules SET position = :position, updated_at = :now_ms
        WHERE tenant_id = :tenant_id AND rule_uuid = :rule_uuid""",
        [{"rule_uuid": one, "position": place, "now_ms": now_ms} for place, one in enumerate(rule_uuids)],
    )
    rules = await listed(tx)
    names = audit.listed(one.values.name for one in rules)
    await _noted(tx, "notify_rules_reordered", "", {"order": names}, address, now_ms)
    return rules


async def of_tenant(tx: Tx, tenant_id: int) -> tuple[Rule, ...]:
    """The rules that are switched on, as routing reads them."""
    rows = await tx.all(f"{_RULES} AND enabled = 1 ORDER BY position, rule_id LIMIT {RULES_MAX}", tenant_id=tenant_id)
    return tuple(_rule(row) for row in rows)


def _rule(row: Row) -> Rule:
    sites, cameras = _keys(row["site_ids"]), _keys(row["camera_keys"])
    events, receivers = _listed(row["primary_events"]), _keys(row["receiver_ids"])
    return Rule(
        rule_id=row["rule_id"],
        position=row["position"],
        name=row["name"],
        enabled=bool(row["enabled"]),
        site_ids=None if sites is None else frozenset(sites),
        camera_keys=None if cameras is None else frozenset(cameras),
        primary_events=None if events is None else frozenset(str(one) for one in events),
        min_severity=row["min_severity"],
        receiver_ids=None if receivers is None else frozenset(receivers),
        quiet=parse_quiet(None if row["quiet"] is None else json.loads(row["quiet"])),
    )


async def _columns(tx: Scoped, values: RuleValues) -> dict[str, object]:
    """The row's values; BadInput or NotFound when the rule names something that there is not."""
    parse_quiet(values.quiet)
    sites = None if values.sites is None else [(await tenants.find_site(tx, one)).site_id for one in values.sites]
    return {
        "name": values.name,
        "enabled": int(values.enabled),
        "site_ids": _json(sites),
        "camera_keys": _json(await _found(tx, _CAMERA_KEYS, values.camera_ids, "camera")),
        "primary_events": _json(values.primary_events),
        "min_severity": values.min_severity,
        "receiver_ids": _json(await _found(tx, _RECEIVER_KEYS, values.receivers, "receiver")),
        "quiet": None if values.quiet is None else json.dumps(dict(values.quiet)),
    }


async def _found(tx: Scoped, sql: str, named: Sequence[str] | None, what: str) -> list[int] | None:
    """The keys of what is named."""
    if named is None:
        return None
    rows = await tx.all(sql, named=list(named)) if named else []
    keys = {row["public_id"]: row["row_key"] for row in rows}
    for one in named:
        if one not in keys:
            raise BadInput(
                f"the rule names the {what} {one!r}, which there is not; see: camserver {what} list",
                reason="rule_names",
                named=one,
            )
    return list(dict.fromkeys(keys[one] for one in named))


async def _shown(tx: Scoped, rows: Sequence[Row]) -> tuple[RuleSummary, ...]:
    sites = await _names(tx, _SITE_NAMES, _all_keys(rows, "site_ids"))
    cameras = await _names(tx, _CAMERA_NAMES, _all_keys(rows, "camera_keys"))
    receivers = await _names(tx, _RECEIVER_NAMES, _all_keys(rows, "receiver_ids"))
    return tuple(_summary(row, sites, cameras, receivers) for row in rows)


def _summary(
    row: Row, sites: Mapping[int, str], cameras: Mapping[int, str], receivers: Mapping[int, str]
) -> RuleSummary:
    gone = 0
    public: list[tuple[str, ...] | None] = []
    for column, names in (("site_ids", sites), ("camera_keys", cameras), ("receiver_ids", receivers)):
        keys = _keys(row[column])
        gone += sum(1 for key in keys or () if key not in names)
        public.append(None if keys is None else tuple(names[key] for key in keys if key in names))
    events = _listed(row["primary_events"])
    return RuleSummary(
        rule_uuid=row["rule_uuid"],
        values=RuleValues(
            name=row["name"],
            enabled=bool(row["enabled"]),
            sites=public[0],
            camera_ids=public[1],
            primary_events=None if events is None else tuple(str(one) for one in events),
            min_severity=row["min_severity"],
            receivers=public[2],
            quiet=None if row["quiet"] is None else json.loads(row["quiet"]),
        ),
        gone=gone,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


async def _names(tx: Scoped, sql: str, keys: Sequence[int]) -> dict[int, str]:
    if not keys:
        return {}
    return {row["row_key"]: row["public_id"] for row in await tx.all(sql, row_keys=keys)}


def _all_keys(rows: Iterable[Row], column: str) -> list[int]:
    return sorted({key for row in rows for key in _keys(row[column]) or ()})


def _keys(text: str | None) -> list[int] | None:
    found = _listed(text)
    return None if found is None else [one for one in found if isinstance(one, int)]


def _listed(text: str | None) -> list[object] | None:
    return None if text is None else list(json.loads(text))


def _json(values: Sequence[object] | None) -> str | None:
    return None if values is None else json.dumps(list(values))


async def _lock(tx: Scoped) -> None:
    """Two people who change the order at once come one after the other."""
    await tx.one("SELECT tenant_id FROM tenants WHERE tenant_id = :tenant_id FOR UPDATE")


async def _noted(
    tx: Scoped, action: str, rule_uuid: str, details: Mapping[str, str | int], address: str, now_ms: int
) -> None:
    await audit.add_own(tx, audit.Entry(action, now_ms, address, "notify_rule", rule_uuid, details))


def _told(values: RuleValues, given: Collection[str]) -> dict[str, str | int]:
    """For the log: the rule's name, and what is given; `*` stands for all."""
    told: dict[str, str | int] = {"name": values.name}
    for name in _FIELDS:
        if name not in given:
            continue
        match getattr(values, name):
            case None:
                told[name] = "" if name == "quiet" else "*"
            case bool() | int() as number:
                told[name] = int(number)
            case tuple() as named:
                told[name] = audit.listed(named)
            case Mapping() as quiet:
                told[name] = json.dumps(dict(quiet), sort_keys=True)[: audit.NAMES_MAX_CHARS]
    return told


def _missing(rule_uuid: str) -> NotFound:
    return NotFound(f"there is no notification rule {rule_uuid}; list them anew", reason="no_rule")


_RULES = """
SELECT rule_id, rule_uuid, position, name, enabled, site_ids, camera_keys, primary_events, min_severity, receiver_ids,
  quiet, created_at, updated_at
FROM notify_rules WHERE tenant_id = :tenant_id"""
_INSERT = """
INSERT INTO notify_rules (rule_uuid, tenant_id, position, name, enabled, site_ids, camera_keys, primary_events,
  min_severity, receiver_ids, quiet, created_at, updated_at)
VALUES (:rule_uuid, :tenant_id, :position, :name, :enabled, :site_ids, :camera_keys, :primary_events,
  :min_severity, :receiver_ids, :quiet, :now_ms, :now_ms)"""
_CAMERA_KEYS = """
SELECT camera_id AS public_id, camera_key AS row_key FROM cameras
WHERE tenant_id = :tenant_id AND deleted_at IS NULL AND camera_id IN (:named...)"""
_RECEIVER_KEYS = """
SELECT name AS public_id, receiver_id AS row_key FROM receivers
WHERE tenant_id = :tenant_id AND name IN (:named...)
UNION ALL
SELECT receiver_uuid AS public_id, receiver_id AS row_key FROM receivers
WHERE tenant_id = :tenant_id AND receiver_uuid IN (:named...)"""
_SITE_NAMES = """
SELECT site_id AS row_key, name AS public_id FROM sites
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND site_id IN (:row_keys...)"""
_CAMERA_NAMES = """
SELECT camera_key AS row_key, camera_id AS public_id FROM cameras
WHERE tenant_id = :tenant_id AND deleted_at IS NULL AND camera_key IN (:row_keys...)"""
_RECEIVER_NAMES = """
SELECT receiver_id AS row_key, receiver_uuid AS public_id FROM receivers
WHERE tenant_id = :tenant_id AND receiver_id IN (:row_keys...)"""
