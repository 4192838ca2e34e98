"""Looks coming in over HTTP: acknowledged only when durable, refused for good, or to be tried again."""

import asyncio
import json
from pathlib import Path

import pytest

from camserver.base.credentials import seal
from camserver.base.errors import EpochEnded, StoreUnavailable, Unavailable
from camserver.config import make_secrets
from camserver.domain.people import Principal, Role
from camserver.objects.local import LocalObjects
from camserver.services.control.recorder import Recorder
from camserver.store import Store, Tx, cameras
from camserver.store.epochs import end_dead
from camserver.store.frames import Look, record
from camserver.store.frames import Recorded as Row
from camserver.store.overrides import Overrides
from camserver.wire.looks import HEADER_MAX_BYTES, LookRefused, Recorded, pack
from tests.rig.clock import ManualClock
from tests.services.control.rig import PICTURE, RunningControl, ScriptedWorker, look_header, running_control
from tests.store.stage import session, statement


async def started(control: RunningControl) -> ScriptedWorker:
    """A worker that holds cam_1 at generation 1."""
    await control.hang_camera()
    worker = await control.connect()
    await worker.start()
    return worker


async def frames(store: Store) -> list[dict[str, object]]:
    return await store.read(_frames)


async def _frames(tx: Tx) -> list[dict[str, object]]:
    columns = [
        "frame_uuid",
        "generation",
        "seq",
        "captured_at",
        "worker_at",
        "received_at",
        "late",
        "collector_status",
        "verdict",
        "epoch_id",
        "infer_bytes",
        "full_bytes",
        "error_code",
        "camera_key",
        "tenant_id",
    ]
    rows = await tx.all(f"SELECT {', '.join(columns)} FROM frames ORDER BY frame_id")
    return [{column: row[column] for column in columns} for row in rows]


async def stored(control: RunningControl) -> list[str]:
    found: list[str] = []
    for prefix in sorted(path.name for path in control.objects.root.iterdir()):
        found += await control.objects.list(prefix + "/", 1000)
    return found


async def test_a_recorded_look_has_its_row_and_its_pictures(control: RunningControl) -> None:
    await started(control)
    header = look_header(control.clock, "cam_1", 1, 1, verdict="analyze", full_bytes=4)
    answer = await control.upload(header, full=b"full")
    assert isinstance(answer, Recorded)
    assert (answer.standing, answer.repeat) == ("live", False)
    (row,) = await frames(control.store)
    assert (row["frame_uuid"], row["seq"], row["infer_bytes"], row["full_bytes"]) == (
        answer.frame_uuid,
        1,
        len(PICTURE),
        4,
    )
    keys = await stored(control)
    assert [key.rpartition(".")[0].rpartition(".")[2] for key in keys] == ["full", "infer"]
    assert await control.objects.get(keys[1]) == PICTURE
    assert all(key.startswith(f"e{row['epoch_id']}/t{row['tenant_id']}/c{row['camera_key']}/") for key in keys)


async def test_a_failed_look_leaves_a_row_without_pictures(control: RunningControl) -> None:
    await started(control)
    header = look_header(control.clock, "cam_1", 1, 1, status="timeout", error_code="no_keyframe", infer_bytes=0)
    answer = await control.upload(header, infer=b"")
    assert isinstance(answer, Recorded)
    (row,) = await frames(control.store)
    assert (row["collector_status"], row["error_code"], row["epoch_id"]) == ("timeout", "no_keyframe", None)
    assert await stored(control) == []


async def test_a_repeat_gets_the_same_answer_and_stores_nothing(control: RunningControl) -> None:
    await started(control)
    header = look_header(control.clock, "cam_1", 1, 1)
    first = await control.upload(header)
    keys = await stored(control)
    again = await control.upload(header)
    assert isinstance(first, Recorded)
    assert isinstance(again, Recorded)
    assert (again.frame_uuid, again.standing, again.repeat) == (first.frame_uuid, "live", True)
    assert await stored(control) == keys


async def test_simultaneous_repeats_leave_one_row_and_one_picture(control: RunningControl) -> None:
    await started(control)
    header = look_header(control.clock, "cam_1", 1, 1)
    answers = await asyncio.gather(*(control.upload(header) for _ in range(12)))
    assert len({answer.frame_uuid for answer in answers if isinstance(answer, Recorded)}) == 1
    assert all(isinstance(answer, Recorded) for answer in answers)
    assert len(await frames(control.store)) == 1
    assert len(await stored(control)) == 1


async def test_a_storm_of_looks_is_recorded_whole(control: RunningControl) -> None:
    await started(control)
    answers = await asyncio.gather(
        *(control.upload(look_header(control.clock, "cam_1", 1, seq)) for seq in range(1, 151))
    )
    assert all(isinstance(answer, Recorded) for answer in answers)
    assert {row["seq"] for row in await frames(control.store)} == set(range(1, 151))


@pytest.mark.parametrize(("camera_id", "generation"), [("cam_9", 1), ("cam_1", 2)])
async def test_what_was_never_this_workers_is_refused_for_good(
    control: RunningControl, camera_id: str, generation: int
) -> None:
    await started(control)
    answer = await control.upload(look_header(control.clock, camera_id, generation, 1))
    assert isinstance(answer, LookRefused)
    assert await stored(control) == []


async def test_another_workers_lease_does_not_help(control: RunningControl) -> None:
    await started(control)
    await control.connect("worker-2")
    answer = await control.upload(look_header(control.clock, "cam_1", 1, 1), worker_id="worker-2")
    assert isinstance(answer, LookRefused)


async def test_looks_of_a_removed_camera_never_pass_for_its_namesakes(control: RunningControl) -> None:
    worker = await started(control)
    assert isinstance(await control.upload(look_header(control.clock, "cam_1", 1, 1)), Recorded)
    admin = control.store.as_(Principal(tenant_id=1, user_id=None, role=Role.SYSTEM_ADMIN))
    await admin.write(cameras.remove, "cam_1", "", control.clock.now_ms())
    again = cameras.NewCamera(
        camera_id="cam_1",
        name="again",
        site="main",
        main=cameras.Stream("test", "test://still"),
        sub=None,
        credentials=None,
        values=Overrides(),
    )
    await admin.write(cameras.add, again, "", control.clock.now_ms())
    await control.pass_time(1)
    start = await worker.start()
    assert start.generation == 2
    assert isinstance(await control.upload(look_header(control.clock, "cam_1", 2, 1)), Recorded)
    assert isinstance(await control.upload(look_header(control.clock, "cam_1", 1, 2)), LookRefused)
    assert [row["generation"] for row in await frames(control.store)] == [1, 2]
    assert len({row["camera_key"] for row in await frames(control.store)}) == 2


async def test_an_unknown_worker_is_told_to_register(control: RunningControl) -> None:
    await started(control)
    body = pack(look_header(control.clock, "cam_1", 1, 1), PICTURE)
    status, answer = await control.post(body, worker_id="stranger")
    assert status == 401
    assert b"not registered" in answer


async def test_the_capture_time_comes_from_the_looks_age(control: RunningControl) -> None:
    """The worker's own idea of the date is a year off; its boot-time clock is right."""
    await started(control)
    now_ms, boot_ms = control.clock.now_ms(), control.clock.boot_ms()
    header = look_header(control.clock, "cam_1", 1, 1, boot_ms=boot_ms - 7_000, captured_at=now_ms - 31_536_000_000)
    await control.upload(header)
    (row,) = await frames(control.store)
    assert (row["captured_at"], row["worker_at"], row["received_at"]) == (
        now_ms - 7_000,
        now_ms - 31_536_000_000,
        now_ms,
    )
    assert row["late"] == 0


async def test_after_a_reboot_the_workers_conversion_stands_but_not_in_the_future(
    control: RunningControl,
) -> None:
    await started(control)
    now_ms = control.clock.now_ms()
    old_boot = {"boot_id": "boot-0", "boot_ms": 1}
    await control.upload(look_header(control.clock, "cam_1", 1, 1, captured_at=now_ms - 500, **old_boot))
    await control.upload(look_header(control.clock, "cam_1", 1, 2, captured_at=now_ms + 60_000, **old_boot))
    await control.upload(look_header(control.clock, "cam_1", 1, 3, captured_at=now_ms - 121_000, **old_boot))
    rows = await frames(control.store)
    assert [row["captured_at"] for row in rows] == [now_ms - 500, now_ms + 1000, now_ms - 121_000]
    assert [row["late"] for row in rows] == [0, 0, 1]


async def test_bodies_that_make_no_sense_are_refused_clearly(control: RunningControl) -> None:
    await started(control)
    good = pack(look_header(control.clock, "cam_1", 1, 1), PICTURE)
    for body in (b"", good[:3], good[:-1], good + b"x", (HEADER_MAX_BYTES + 1).to_bytes(4, "big") + good[4:]):
        status, answer = await control.post(body)
        assert status == 400, answer
        assert json.loads(answer)["error_code"] == "bad_input"
    assert await frames(control.store) == []


async def test_an_upload_over_the_limit_is_refused_before_it_is_read(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    environ = {"CAMSERVER_CONTROL_UPLOAD_MAX_BYTES": "100000"}
    async with running_control(sqlite_store, clock, tmp_path, environ) as control:
        status, answer = await control.post(b"x" * 100_001)
        assert status == 413
        assert json.loads(answer)["error_code"] == "too_large"


async def test_an_epoch_ended_under_an_upload_means_writing_again(control: RunningControl) -> None:
    await started(control)
    first = await control.upload(look_header(control.clock, "cam_1", 1, 1))
    now_ms = control.clock.now_ms()
    assert await control.store.write(end_dead, now_ms + 1, now_ms)
    second = await control.upload(look_header(control.clock, "cam_1", 1, 2))
    assert isinstance(first, Recorded)
    assert isinstance(second, Recorded)
    before, after = await frames(control.store)
    assert isinstance(before["epoch_id"], int)
    assert isinstance(after["epoch_id"], int)
    assert after["epoch_id"] > before["epoch_id"]
    key = next(
        key for key in await stored(control) if second.frame_uuid in key and key.startswith(f"e{after['epoch_id']}/")
    )
    assert await control.objects.get(key) == PICTURE


async def test_the_epoch_is_renewed_while_control_lives(control: RunningControl) -> None:
    await control.pass_time(30, step_sec=5)
    now_ms = control.clock.now_ms()
    assert await control.store.write(end_dead, now_ms - 11_000, now_ms) == 0


class BrokenStore:
    """Lets a test make the next writes of looks fail."""

    def __init__(self, control: RunningControl, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures: list[Exception] = []
        self.batches: list[int] = []
        original = control.store.write

        async def write(operation: object, *args: object, **kwargs: object) -> object:
            if operation is record:
                looks = args[0]
                assert isinstance(looks, tuple)
                self.batches.append(len(looks))
                if self.failures:
                    raise self.failures.pop(0)
            return await original(operation, *args, **kwargs)  # type: ignore[arg-type]  # passed through

        monkeypatch.setattr(control.store, "write", write)


async def test_while_the_store_is_away_nothing_is_acknowledged(
    control: RunningControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(control)
    broken = BrokenStore(control, monkeypatch)
    broken.failures = [StoreUnavailable("the database is away")]
    header = look_header(control.clock, "cam_1", 1, 1)
    async with control.http.post(
        control.url("/v1/looks"),
        data=pack(header, PICTURE),
        headers={"Authorization": f"Bearer {control.token.reveal()}", "X-Camserver-Worker": "worker-1"},
    ) as response:
        assert response.status == 503
        assert int(response.headers["Retry-After"]) > 0
        assert (await response.json())["error_code"] == "store_unavailable"
    assert await frames(control.store) == []
    answer = await control.upload(header)
    assert isinstance(answer, Recorded)
    assert answer.repeat is False


async def test_a_full_disk_for_pictures_means_try_again(
    control: RunningControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(control)

    async def put(self: LocalObjects, key: str, data: bytes) -> None:
        raise Unavailable("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(LocalObjects, "put", put)
        status, _ = await control.post(pack(look_header(control.clock, "cam_1", 1, 1), PICTURE))
        assert status == 503
    assert await frames(control.store) == []


async def test_a_look_that_breaks_its_batch_fails_alone(
    control: RunningControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two looks share a transaction; one of them was put under an ended epoch."""
    await started(control)
    broken = BrokenStore(control, monkeypatch)
    recorder = Recorder(control.store, control.settings.leases)
    await control.upload(look_header(control.clock, "cam_1", 1, 1))
    broken.batches.clear()
    good = a_look(control, 2)
    bad = a_look(control, 3, epoch_id=999)
    answer, error = await asyncio.gather(*map(recorder.record, (good, bad)), return_exceptions=True)
    assert isinstance(answer, Row)
    assert isinstance(error, EpochEnded)
    assert broken.batches == [2, 1, 1]


def a_look(control: RunningControl, seq: int, epoch_id: int | None = None) -> Look:
    now_ms = control.clock.now_ms()
    return Look(
        worker_key=1,
        tenant_id=control.tenant_id,
        site_id=control.site_id,
        camera_key=1,
        generation=1,
        seq=seq,
        frame_uuid=f"frame-{seq}",
        captured_at=now_ms,
        worker_at=now_ms,
        received_at=now_ms,
        collector_status="ok",
        verdict="skip",
        priority=100,
        epoch_id=epoch_id,
    )


async def test_uploads_under_way_at_the_end_are_answered_or_cut_but_never_falsely_acknowledged(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_control(sqlite_store, clock, tmp_path) as control:
        await started(control)
        uploads = [
            asyncio.create_task(control.post(pack(look_header(clock, "cam_1", 1, seq), PICTURE)))
            for seq in range(1, 31)
        ]
        await asyncio.wait(uploads, return_when=asyncio.FIRST_COMPLETED)
        control_answers = await asyncio.gather(*uploads, return_exceptions=True)
    acknowledged = [
        json.loads(answer[1])["frame_uuid"]
        for answer in control_answers
        if isinstance(answer, tuple) and answer[0] == 200
    ]
    recorded = {row["frame_uuid"] for row in await frames(sqlite_store)}
    assert acknowledged
    assert set(acknowledged) <= recorded


async def test_the_camera_password_reaches_start_and_no_log(
    control: RunningControl, caplog: pytest.LogCaptureFixture
) -> None:
    camera = await control.hang_camera()
    key = make_secrets(control.settings).credential_key_bytes()
    sealed = seal(key, control.tenant_id, "cam_1", json.dumps({"user": "eye", "password": "p4ss-w0rd!"}).encode())
    await control.store.write(
        statement,
        """INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at)
        VALUES (:camera_key, :tenant_id, :key_id, :nonce, :ciphertext, 0)""",
        {
            "camera_key": camera.key,
            "tenant_id": control.tenant_id,
            "key_id": sealed.key_id,
            "nonce": sealed.nonce,
            "ciphertext": sealed.ciphertext,
        },
    )
    with caplog.at_level("DEBUG", logger="camserver"):
        worker = await control.connect()
        order = await worker.start()
    assert order.source.user == "eye"
    assert order.source.password is not None
    assert order.source.password.reveal() == "p4ss-w0rd!"
    assert caplog.records
    assert "p4ss-w0rd!" not in caplog.text


async def test_credentials_that_do_not_open_pause_the_camera_with_the_reason(
    control: RunningControl,
) -> None:
    camera = await control.hang_camera()
    await control.store.write(
        statement,
        """INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at)
        VALUES (:camera_key, :tenant_id, 'other', :nonce, :nonce, 0)""",
        {"camera_key": camera.key, "tenant_id": control.tenant_id, "nonce": b"x" * 12},
    )
    worker = await control.connect()
    await control.pass_time(2)
    await worker.settled()
    assert worker.heard[1:] == worker.heard[-1:]
    row = await session(control.store, camera.key)
    assert (row["state"], row["worker_key"]) == ("PAUSED", None)
    assert "sealed with another key" in str(row["reason"])
