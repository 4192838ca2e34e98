"""`camserver event`, `incident`, `statistics` and `case show|remove` against a real store.

On SQLite: what they ask of the store has tests of its own on each database.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.exits import Exit
from camserver.commands.shown import moment
from camserver.domain.people import Role
from camserver.domain.statistics import HOUR_MS
from camserver.store import Store, cameras, open_store
from tests.store.people_rows import (
    NOW_MS,
    EventRow,
    FrameRow,
    add_event,
    add_frame,
    add_incident,
    add_user,
    admin_of,
    audit_rows,
    execute,
    prepare,
)
from tests.store.test_cameras import CAMERA

pytestmark = pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)

PASSWORD = "four words of a test"
LATER_MS = NOW_MS + 30 * 60_000
DAY = "2026-01-01"
HOURS = (NOW_MS, NOW_MS + HOUR_MS)
_HOURS = """
INSERT INTO hourly_stats (tenant_id, camera_key, hour_at, looks, looks_failed, analyzed, detected, unknown, events,
  severity_max, bytes, by_event) SELECT :tenant_id, camera_key, :hour_at, 60, 2, 5, 3, 1, 2, 2, 1500000,
  '{"human": 1, "unknown": 1}' FROM cameras WHERE camera_id = 'cam_1'"""

Look = Callable[[Store], Any]


@pytest.fixture(autouse=True)
def url(db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("CAMSERVER_STORE_URL", db_url)
    monkeypatch.setenv("CAMSERVER_WEB_PORT", "1")  # nobody answers there: each command has a server of its own
    with_store(db_url, furnish)
    return db_url


def with_store(db_url: str, work: Look) -> Any:
    async def opened() -> Any:
        store = await open_store(db_url)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(opened())


async def furnish(store: Store) -> None:
    """One camera with two events of one incident, a frame, two hours of figures, and somebody who signs in."""
    tenant_id = (await prepare(store)).tenant_id
    await store.as_(admin_of(tenant_id)).write(cameras.add, CAMERA, "", NOW_MS)
    incident_id = await store.write(add_incident, tenant_id, "cam_1", "i1", NOW_MS, 2)
    human = EventRow(severity_max=2, incident_id=incident_id, last_seen_at=NOW_MS + 90_000)
    await store.write(add_event, tenant_id, "cam_1", "e1", NOW_MS, (("count.single", "notify_safe"),), human)
    strange = EventRow(primary_event="unknown", incident_id=incident_id)
    event_id = await store.write(add_event, tenant_id, "cam_1", "e2", LATER_MS, (), strange)
    await store.write(execute, "UPDATE incidents SET last_event_id = :event_id", {"event_id": event_id})
    await store.write(add_frame, FrameRow(tenant_id, "cam_1", NOW_MS, "f1"))
    for hour_at in HOURS:
        await store.write(execute, _HOURS, {"tenant_id": tenant_id, "hour_at": hour_at})
    stored = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    await store.write(add_user, tenant_id, "owner", Role.VIEWER.value, stored, NOW_MS)


def run(*arguments: str, expected: Exit = Exit.OK, typed: str | None = None) -> Result:
    result = CliRunner().invoke(cli.main, ["--data-dir", "data", *arguments], input=typed)
    assert result.exit_code == expected.value, result.output
    return result


def said(*arguments: str, typed: str | None = None) -> Any:
    return json.loads(run(*arguments, "--json", typed=typed).stdout)


def test_events_are_listed_and_narrowed() -> None:
    shown = run("event", "list").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["EVENT", "e2", "e1"]
    assert "Unknown activity" in shown[1]
    assert all(word in shown[2] for word in ("cam_1", "main", "Person detected", moment(NOW_MS), "90 s"))
    for options, expected in (
        (["--unknown"], ["e2"]),
        (["--kind", "human"], ["e1"]),
        (["--severity", "2"], ["e1"]),
        (["--site", "main", "--camera", "cam_1"], ["e2", "e1"]),
        (["--since", "2026-01-01T00:10Z"], ["e2"]),
        (["--until", "2026-01-01T09:10+09:00"], ["e1"]),
        (["--hours", "1"], []),
        (["--limit", "1"], ["e2"]),
    ):
        assert [one["event_uuid"] for one in said("event", "list", *options)["events"]] == expected, options
    assert "raise --limit" in run("event", "list", "--limit", "1").output
    nothing = run("event", "list", "--severity", "3")
    assert (nothing.stdout, nothing.stderr) == ("", "No such events.\n")
    assert "no camera 'cam_9'" in run("event", "list", "--camera", "cam_9", expected=Exit.REFUSED).output
    assert "no site moon" in run("event", "list", "--site", "moon", expected=Exit.REFUSED).output


def test_an_incident_is_reviewed_by_a_person_and_the_review_undone(url: str) -> None:
    assert "nobody" in run("incident", "list", "--unreviewed").stdout
    mine = ("incident", "review", "i1", "--login", "owner")
    assert "Password of owner" in run(*mine, typed=f"{PASSWORD}\n").output
    [reviewed] = said("incident", "list", "--reviewed")["incidents"]
    assert (reviewed["incident_uuid"], reviewed["reviewers"]) == ("i1", 1)
    assert run("incident", "list", "--unreviewed").stderr == "No such incidents.\n"
    [undone] = said(*mine, "--undo", "--password-stdin", typed=f"{PASSWORD}\n")["incidents"]
    assert (undone["reviewers"], undone["reviewed_at"]) == (0, None)
    wrong = run(*mine, "--password-stdin", expected=Exit.REFUSED, typed="not this one\n")
    assert "owner was not signed in: login or password is wrong" in wrong.output
    other = ("incident", "review", "i1", "i9", "--login", "owner", "--password-stdin")
    partly = run(*other, expected=Exit.REFUSED, typed=f"{PASSWORD}\n")
    assert "i1 is marked as reviewed by owner" in partly.output
    assert "no incident i9" in partly.output
    actions = [row[1] for row in with_store(url, lambda store: store.read(audit_rows))]
    assert actions.count("sign_in") == actions.count("sign_out") == 3
    assert actions.count("sign_in_failed") == 1


def test_figures_by_hour_and_day() -> None:
    span = ("--since", f"{DAY}T00:00Z", "--until", "2026-01-02T00:00Z")
    shown = run("statistics", *span).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["WHEN", *(moment(at_ms).split()[0] for at_ms in HOURS), "total"]
    assert "3.0 MB" in shown[-1]
    assert "Person detected 2, Unknown activity 2" in shown[-1]
    [day] = said("statistics", "--by", "day", *span, "--site", "main", "--camera", "cam_1")["buckets"]
    assert (day["day"], day["looks"], day["events"]) == (DAY, 120, 4)
    assert len(run("statistics", "--by", "day", *span).stdout.splitlines()) == 2, "of one day there is no total"
    assert run("statistics", "--hours", "2").stderr == "Nothing was counted in this time.\n"
    assert "no camera 'cam_9'" in run("statistics", "--camera", "cam_9", expected=Exit.REFUSED).output
    assert "at most 32 days" in run("statistics", "--since", "2025-01-01", expected=Exit.REFUSED).output


def test_what_a_case_holds_is_shown_and_taken_out(url: str) -> None:
    case = run("case", "create", "Bicycle", "--note", "Seen twice.\nBy two people.").output.strip()
    assert "Nothing is in it yet" in run("case", "show", case).stdout
    run("case", "add", case, "event", "e1", "e2")
    run("case", "add", case, "frame", "f1")
    shown = run("case", "show", case).stdout
    for words in ("Bicycle\nState: open\n", "local admin: Seen twice.\n    By two people.", "Items: 3", "e2", "kept"):
        assert words in shown
    assert [one["uuid"] for one in said("case", "show", case)["item_list"]] == ["e1", "e2", "f1"]
    assert "the case has no item e9" in run("case", "remove", case, "e1", "e9", expected=Exit.REFUSED).output
    assert (
        "the case has no clip e1" in run("case", "remove", case, "e1", "--kind", "clip", expected=Exit.REFUSED).output
    )
    assert said("case", "show", case)["items"] == 3, "when one is not there, all stay"
    assert "Taken out: 2" in run("case", "remove", case, "e1", "f1", "e1").stdout
    run("case", "hold", case)
    assert "on hold" in run("case", "remove", case, "e2", expected=Exit.REFUSED).output
    run("case", "hold", case, "--off")
    run("case", "close", case)
    assert "reopen it first" in run("case", "remove", case, "e2", expected=Exit.REFUSED).output
    assert "Closed: " in run("case", "show", case).stdout
    run("case", "close", case, "--reopen")
    assert said("case", "remove", case, "e2") == {"removed": 1}
    rows = with_store(url, lambda store: store.read(audit_rows))
    assert [row[4]["uuid"] for row in rows if row[1] == "case_item_removed"] == ["e1", "f1", "e2"]
    assert "no case" in run("case", "show", "0198c0de-0000-7000-8000-00000000dead", expected=Exit.REFUSED).output
