"""Jobs over the API: listed, counted, queued again; and how the analyzers stand."""

from camserver.domain.jobs import REASONS
from camserver.domain.people import Role
from camserver.services.web.messages import _JA_BY_REASON
from camserver.store import Tx, analyzers
from camserver.store.analyzers import Seen
from camserver.wire import api
from tests.services.web.rig import Browser, RunningWeb
from tests.store.people_rows import FrameRow, add_frame, audit_rows

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
ERRORS = (
    "bad_request: no picture",
    "broken_answer in attempt 5 of 5: nonsense",
    "older than 86400 s",
)


async def add_job(tx: Tx, frame_id: int, status: str, error: str | None, now_ms: int) -> None:
    await tx.run(
        """
        INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority, lap, attempt,
          available_at, created_at, finished_at, last_error)
        SELECT tenant_id, frame_id, camera_key, captured_at, :status, 100, 0, 5, :now_ms, :now_ms, :now_ms, :error
        FROM frames WHERE frame_id = :frame_id""",
        frame_id=frame_id,
        status=status,
        error=error,
        now_ms=now_ms,
    )


async def furnished(web: RunningWeb) -> Browser:
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    for number, (status, error) in enumerate(zip(("dead", "dead", "skipped"), ERRORS, strict=True)):
        frame_id = await web.store.write(add_frame, FrameRow(tenant_id, "cam_1", now_ms + number, f"f{number}"))
        await web.store.write(add_job, frame_id, status, error, now_ms)
    return owner


def test_every_reason_has_a_name_in_the_api() -> None:
    assert set(api.JobReason.__args__) == set(REASONS)  # type: ignore[attr-defined]  # what a Literal holds


async def test_jobs_are_listed_and_counted(web_on_each: RunningWeb) -> None:
    owner = await furnished(web_on_each)
    page = (await owner.get("/api/jobs?status=dead&limit=1")).body
    assert [(job["frame_uuid"], job["reason"], job["error"]) for job in page["jobs"]] == [
        ("f1", "broken_answer", ERRORS[1])
    ]
    rest = (await owner.get(f"/api/jobs?status=dead&limit=1&before={page['next_before']}")).body
    assert [job["frame_uuid"] for job in rest["jobs"]] == ["f0"]
    narrowed = (await owner.get("/api/jobs?camera_id=cam_1&reason=too_old")).body
    assert [job["frame_uuid"] for job in narrowed["jobs"]] == ["f2"]
    assert narrowed["next_before"] is None
    unknown = await owner.get("/api/jobs?camera_id=cam_1&camera_id=cam_9")
    assert (unknown.status, unknown.body["details"]["camera_id"]) == (404, "cam_9")
    unknown = await owner.post("/api/jobs/requeue", {"camera_ids": ["cam_9"]})
    assert (unknown.status, unknown.body["details"]["camera_id"]) == (404, "cam_9")
    counts = (await owner.get("/api/jobs/counts")).body
    assert (counts["statuses"]["dead"], counts["statuses"]["skipped"]) == (2, 1)
    assert counts["reasons"] == {"bad_request": 1, "broken_answer": 1, "too_old": 1}
    for path in ("/api/jobs?status=odd", "/api/jobs?reason=odd", "/api/jobs?limit=0", "/api/jobs?before=x"):
        assert (await owner.get(path)).status == 400


async def test_jobs_are_queued_again(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await furnished(web)
    again = await owner.post("/api/jobs/f0/requeue", {})
    assert (again.status, again.body["status"], again.body["attempt"]) == (200, "queued", 0)
    assert again.body["created_at"] == web.clock.now_ms()
    twice = await owner.post("/api/jobs/f0/requeue", {})
    assert (twice.status, twice.body["details"]["reason"]) == (409, "job_not_given_up")
    assert (await owner.post("/api/jobs/none/requeue", {})).status == 404
    done = await owner.post("/api/jobs/requeue", {})
    assert done.body == {"requeued": 1, "more": False}, "those that are dead, unless it says otherwise"
    done = await owner.post("/api/jobs/requeue", {"statuses": ["skipped"], "reason": "too_old"})
    assert done.body == {"requeued": 1, "more": False}
    assert (await owner.post("/api/jobs/requeue", {"statuses": ["done"]})).status == 400
    assert (await owner.post("/api/jobs/requeue", {"limit": 100_000})).status == 400
    actions = [(row[1], row[3], row[4]) for row in await web.store.read(audit_rows)][3:]
    assert actions == [
        ("job_requeued", "f0", None),
        ("jobs_requeued", "", {"jobs": 1, "reason": ""}),
        ("jobs_requeued", "", {"jobs": 1, "reason": "too_old"}),
    ]


async def test_how_the_analyzers_stand(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await furnished(web)
    seen = Seen("http://is21:9000", "away", 0, 1, None, "connection: refused")
    await web.store.write(analyzers.report, "host:1:ab", (seen,), web.clock.now_ms())
    status = (await owner.get("/api/jobs/status")).body
    assert status["standing"] == "idle"
    assert status["analyzers"] == [
        {
            "dispatcher": "host:1:ab", "url": "http://is21:9000", "state": "away", "in_flight": 0, "concurrency": 1,
            "latency_ms": None, "last_error": "connection: refused", "seen_at": web.clock.now_ms(),
        }
    ]  # fmt: skip
    await web.clock.advance(61_000)
    assert (await owner.get("/api/jobs/status")).body["analyzers"] == [], "a dispatcher that is not heard of any more"
    await web.store.write(analyzers.report, "host:1:ab", (seen,), web.clock.now_ms())
    await web.store.write(set_role, Role.TENANT_ADMIN.value)
    (shown,) = (await owner.get("/api/jobs/status")).body["analyzers"]
    assert (shown["dispatcher"], shown["url"], shown["last_error"], shown["state"]) == (None, None, None, "away")
    await web.store.write(set_role, Role.VIEWER.value)
    assert (await owner.get("/api/jobs/status")).status == 200
    for path in ("/api/jobs", "/api/jobs/counts"):
        assert (await owner.get(path)).status == 403
    assert (await owner.post("/api/jobs/f0/requeue", {})).status == 403
    assert (await owner.post("/api/jobs/requeue", {})).status == 403


async def set_role(tx: Tx, role: str) -> None:
    await tx.run("UPDATE users SET role = :role", role=role)


def test_refusals_are_told_in_japanese_too() -> None:
    assert {"no_job", "job_not_given_up"} <= _JA_BY_REASON.keys()
