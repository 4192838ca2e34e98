"""Receivers and deliveries by the API: secrets go in and never come out, and dead letters can be sent again."""

import json
from typing import Any

import pytest

from camserver.base.credentials import Sealed, open_sealed
from camserver.config import make_secrets
from camserver.domain.people import Role
from camserver.store import Tx
from camserver.store.receivers import secrets_of
from tests.services.web.rig import Browser, LoggedLines, RunningWeb
from tests.services.web.test_access import set_role

URL = "https://hooks.example/very-secret-token"
KEY = "a-signing-key-of-some-length"
HOOK = {
    "name": "事務所",
    "kind": "webhook",
    "config": {"summaries": True},
    "secrets": {"url": URL, "signing_key": KEY},
    "language": "en",
    "hourly_cap": 30,
}


async def added(browser: Browser, **changes: object) -> dict[str, Any]:
    reply = await browser.post("/api/receivers", {**HOOK, **changes})
    assert reply.status == 201, reply.content
    body: dict[str, Any] = reply.body
    return body


async def rows(tx: Tx, sql: str) -> list[dict[str, Any]]:
    found: Any = await tx.all(sql)
    return [dict(row) for row in found]


async def test_a_receiver_is_added_changed_listed_and_removed(web_on_each: RunningWeb, logged: LoggedLines) -> None:
    web = web_on_each
    owner = await web.owner()
    made = await added(owner)
    assert made["config"] == {"summaries": True, "signed_link": False, "picture": True}
    assert made["secrets"] == {"url": {"is_set": True}, "signing_key": {"is_set": True}}
    path = f"/api/receivers/{made['receiver_uuid']}"

    changed = await owner.ask("PATCH", path, {"name": "門", "secrets": {"signing_key": None}, "hourly_cap": None})
    assert changed.status == 200, changed.content
    assert (changed.body["name"], changed.body["hourly_cap"]) == ("門", None)
    assert changed.body["secrets"] == {"url": {"is_set": True}, "signing_key": {"is_set": False}}
    assert changed.body["config"]["summaries"] is True
    assert (await owner.ask("PATCH", path, {"enabled": False})).body["enabled"] is False

    listed = await owner.get("/api/receivers")
    assert [one["name"] for one in listed.body["receivers"]] == ["門"]
    for told in (listed.content, json.dumps(made).encode(), "\n".join(logged.lines).encode()):
        assert b"very-secret-token" not in told
        assert KEY.encode() not in told

    assert (await owner.ask("DELETE", path)).status == 204
    assert (await owner.get(path)).status == 404
    log = await web.store.read(
        rows, "SELECT action, details FROM audit_log WHERE object_kind = 'receiver' ORDER BY at"
    )
    assert [row["action"] for row in log] == ["receiver_added", *["receiver_changed"] * 2, "receiver_removed"]
    assert all("secret-token" not in str(row["details"]) for row in log)
    details = [json.loads(row["details"]) for row in log]
    made_so = {"enabled": 1, "language": "en", "hourly_cap": 30}
    assert details == [
        {"name": "事務所", "kind": "webhook", **made_so},
        {"name": "門", "name_before": "事務所", "what": details[1]["what"], "hourly_cap": ""},
        {"name": "門", "what": "enabled", "enabled": 0},
        {"name": "門"},
    ]


async def test_secrets_are_sealed_for_this_receiver_alone(web: RunningWeb) -> None:
    made = await added(await web.owner())
    (row,) = await web.store.read(rows, "SELECT * FROM receivers")
    assert b"very-secret-token" not in bytes(row["ciphertext"])
    assert "very-secret-token" not in row["config"]
    key = make_secrets(web.settings).credential_key_bytes()
    sealed = Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"]))
    plain = open_sealed(key, row["tenant_id"], secrets_of(made["receiver_uuid"]), sealed)
    assert json.loads(plain) == {"url": URL, "signing_key": KEY}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"config": {"sumaries": True}}, "config.sumaries"),
        ({"secrets": {}}, "secrets.url"),
        ({"secrets": {"url": "ftp://host/very-secret-token"}}, "secrets.url"),
        ({"secrets": {"url": "http://169.254.169.254/very-secret-token"}}, "secrets.url: must not be link-local"),
        ({"secrets": {"url": URL, "signing_key": "short-secret"}}, "secrets.signing_key"),
        ({"secrets": {"url": URL, "password": "very-secret-token"}}, "secrets.password"),
        ({"name": "  "}, "name"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_the_field(
    web: RunningWeb, changes: dict[str, Any], word: str
) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/receivers", {**HOOK, **changes})
    assert reply.status == 400, reply.content
    assert word in reply.body["message"]
    assert b"very-secret-token" not in reply.content
    assert b"short-secret" not in reply.content


async def test_a_name_is_taken_once(web: RunningWeb) -> None:
    owner = await web.owner()
    await added(owner)
    again = await owner.post("/api/receivers", HOOK)
    assert (again.status, again.body["details"]["reason"]) == (409, "receiver_exists")
    other = await added(owner, name="other")
    taken = await owner.ask("PATCH", f"/api/receivers/{other['receiver_uuid']}", {"name": HOOK["name"]})
    assert taken.status == 409


async def test_who_may_read_sees_names_and_no_config(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await added(owner)
    await web.store.write(set_role, Role.VIEWER.value)
    (seen,) = (await owner.get("/api/receivers")).body["receivers"]
    assert seen["name"] == HOOK["name"]
    assert (seen["config"], seen["secrets"], seen["last_error"]) == (None, None, None)
    path = f"/api/receivers/{made['receiver_uuid']}"
    for method, where in (("PATCH", path), ("DELETE", path), ("POST", f"{path}/test"), ("POST", "/api/receivers")):
        assert (await owner.ask(method, where, {})).status == 403
    assert (await owner.get("/api/deliveries")).status == 403


async def test_a_trial_is_a_delivery(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    made = await added(owner)
    started = await owner.post(f"/api/receivers/{made['receiver_uuid']}/test", None)
    assert started.status == 202, started.content
    delivery = (await owner.get(f"/api/deliveries/{started.body['delivery_uuid']}")).body
    assert (delivery["kind"], delivery["reason"], delivery["status"]) == ("message", "trial", "queued")
    assert delivery["receiver_name"] == HOOK["name"]
    listed = (await owner.get(f"/api/deliveries?receiver={made['receiver_uuid']}&status=queued")).body
    assert [one["delivery_uuid"] for one in listed["deliveries"]] == [delivery["delivery_uuid"]]
    assert (await owner.get("/api/deliveries?status=dead")).body["deliveries"] == []


async def test_pages_of_deliveries(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await added(owner)
    uuids = [
        (await owner.post(f"/api/receivers/{made['receiver_uuid']}/test", None)).body["delivery_uuid"]
        for _ in range(5)
    ]
    seen: list[str] = []
    before = ""
    while True:
        page = (await owner.get(f"/api/deliveries?limit=2{before}")).body
        seen += [one["delivery_uuid"] for one in page["deliveries"]]
        if page["next_before"] is None:
            break
        before = f"&before={page['next_before']}"
    assert seen == uuids[::-1]


async def kill(tx: Tx, how_many: int) -> None:
    found = await tx.all("SELECT delivery_id FROM deliveries ORDER BY delivery_id LIMIT :n", n=how_many)
    await tx.run(
        "UPDATE deliveries SET status = 'dead', attempt = 12, last_error = 'refused: 400', created_at = 1 "
        "WHERE delivery_id IN (:ids...)",
        ids=[row["delivery_id"] for row in found],
    )


async def test_dead_letters_are_queued_again(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    made = await added(owner)
    uuids = [
        (await owner.post(f"/api/receivers/{made['receiver_uuid']}/test", None)).body["delivery_uuid"]
        for _ in range(4)
    ]
    refused = await owner.post(f"/api/deliveries/{uuids[0]}/requeue", None)
    assert (refused.status, refused.body["details"]["reason"]) == (409, "delivery_not_dead")

    await web.store.write(kill, 3)
    one = await owner.post(f"/api/deliveries/{uuids[0]}/requeue", None)
    assert one.status == 200, one.content
    assert (one.body["status"], one.body["attempt"]) == ("queued", 0)
    assert one.body["created_at"] == web.clock.now_ms(), "its age begins anew"

    nothing = await owner.post("/api/deliveries/requeue", {"kind": "copy"})
    assert nothing.body == {"count": 0}
    rest = await owner.post("/api/deliveries/requeue", {"receiver_uuid": made["receiver_uuid"]})
    assert rest.body == {"count": 2}
    statuses = {row["status"] for row in await web.store.read(rows, "SELECT status FROM deliveries")}
    assert statuses == {"queued"}


async def test_what_goes_to_a_removed_receiver_is_dead_and_stays_so(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await added(owner)
    path = f"/api/receivers/{made['receiver_uuid']}"
    delivery_uuid = (await owner.post(f"{path}/test", None)).body["delivery_uuid"]
    assert (await owner.ask("DELETE", path)).status == 204
    dead = (await owner.get(f"/api/deliveries/{delivery_uuid}")).body
    assert (dead["status"], dead["last_error"]) == ("dead", "the receiver was removed")
    again = await owner.post(f"/api/deliveries/{delivery_uuid}/requeue", None)
    assert (again.status, again.body["details"]["reason"]) == (409, "delivery_without_receiver")
    assert (await owner.post("/api/deliveries/requeue", {})).body == {"count": 0}
