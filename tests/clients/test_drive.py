"""Copies on Google Drive: whole and once, whatever happens on the way."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from camserver.base.errors import BadInput
from camserver.clients import drive as drive_client
from camserver.clients.drive import DriveArchive
from camserver.clients.drive_answers import FULL_PAUSE_SEC, SPENT_PAUSE_SEC
from camserver.clients.drive_tokens import parse_account
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.domain.archive import Copy
from camserver.domain.deliveries import DeliveryError, JsonObject, ReceiverKind, Trouble
from tests.clients.archiving import DELIVERY, PATH, archive_receiver, copy_of
from tests.fakes.drive import (
    Answer,
    Corrupted,
    Cut,
    Elsewhere,
    FakeDrive,
    Lie,
    Lost,
    SessionGone,
    Terse,
    Unheard,
    Wait,
)
from tests.rig.clock import ManualClock

PICTURE = bytes(range(256)) * 1200
FOLDERS = ["camera-archive", "camera-archive/2026", "camera-archive/2026/11", "camera-archive/2026/11/16"]


class Sending:
    """One delivery to the fake Drive, attempt after attempt, with what is kept of it in between."""

    def __init__(self, drive: FakeDrive) -> None:
        self.drive = drive
        self.clock = ManualClock()
        self.http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
        self.archive = DriveArchive(self.http, self.clock, drive.url)
        self.receiver = archive_receiver(ReceiverKind.DRIVE, {"folder_id": drive.root_id}, credentials=drive.key_file)
        self.kept: JsonObject = {}
        self.attempts = 0

    async def keep(self, progress: JsonObject) -> None:
        self.kept = json.loads(json.dumps(progress))

    async def attempt(self, **changes: Any) -> str:
        """The file's id; what the attempt leaves behind is there for the next one, as the store does it."""
        self.attempts += 1
        copy: Copy = copy_of(PICTURE, attempt=self.attempts, progress=self.kept, **changes)
        try:
            stored = await self.archive.store(self.receiver, copy, self.keep)
        except DeliveryError as error:
            if error.progress is not None:
                self.kept = error.progress
            raise
        return stored.external_id

    async def failed(self, **changes: Any) -> DeliveryError:
        with pytest.raises(DeliveryError) as failed:
            await self.attempt(**changes)
        return failed.value

    def restart(self) -> None:
        """Nothing in memory survives."""
        self.archive = DriveArchive(self.http, self.clock, self.drive.url)


@pytest.fixture
async def drive() -> AsyncIterator[FakeDrive]:
    async with FakeDrive() as fake:
        yield fake


@pytest.fixture
async def sending(drive: FakeDrive) -> AsyncIterator[Sending]:
    made = Sending(drive)
    yield made
    await made.http.close()


async def test_a_copy_lies_in_its_folders_with_its_delivery(sending: Sending, drive: FakeDrive) -> None:
    file_id = await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.folders() == [*FOLDERS, f"{FOLDERS[-1]}/cam_1"]
    marked = drive.files[file_id].metadata["appProperties"]
    assert marked["camserverDelivery"] == DELIVERY
    # Drive's bound of one property, name and value together.
    assert all(len(name) + len(value) <= 124 for name, value in marked.items())
    assert sending.kept["session"].startswith(drive.url)


async def test_a_copy_is_read_again_and_a_missing_one_is_none(sending: Sending) -> None:
    file_id = await sending.attempt()
    assert await sending.archive.read(sending.receiver, file_id) == PICTURE
    assert await sending.archive.read(sending.receiver, "nothing") is None


async def test_a_file_of_which_only_the_id_is_told_is_looked_at(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Terse())
    file_id = await sending.attempt()
    assert drive.looked_at.count(file_id) == 1
    assert drive.pictures() == {PATH: PICTURE}


@pytest.mark.parametrize("left", ["in the bin", "nowhere"])
async def test_a_file_that_is_not_there_is_uploaded_anew(sending: Sending, drive: FakeDrive, left: str) -> None:
    drive.fail("put", Terse(left))
    error = await sending.failed()
    assert error.kind is Trouble.RETRY
    assert drive.pictures() == {}
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}


async def test_a_clip_is_sent_as_one(sending: Sending, drive: FakeDrive) -> None:
    await sending.attempt(path=PATH.replace(".jpg", ".mp4"))
    assert drive.put_types == ["video/mp4"]


async def test_folders_are_made_once_and_remembered(sending: Sending, drive: FakeDrive) -> None:
    await asyncio.gather(
        *(
            sending.archive.store(
                sending.receiver,
                copy_of(PICTURE, PATH.replace("0001.jpg", f"{n:04}.jpg"), delivery_uuid=f"{DELIVERY}-{n}"),
                sending.keep,
            )
            for n in range(8)
        )
    )
    assert drive.folders() == [*FOLDERS, f"{FOLDERS[-1]}/cam_1"]
    assert len(drive.pictures()) == 8
    assert drive.asked.count("folder") == 5
    assert drive.asked.count("token") == 1
    sending.restart()
    sending.kept = {}
    await sending.attempt(path=PATH.replace("0001.jpg", "0009.jpg"), delivery_uuid="another")
    assert drive.asked.count("folder") == 5


@pytest.mark.parametrize("after_bytes", [0, 1, 4096, 100_000, len(PICTURE) - 1])
@pytest.mark.parametrize("restarted", [False, True])
async def test_an_upload_that_was_cut_goes_on_where_it_stopped(
    sending: Sending, drive: FakeDrive, after_bytes: int, restarted: bool
) -> None:
    """Each byte is sent once; the fake refuses bytes it has, and holes."""
    drive.fail("put", Cut(after_bytes))
    if after_bytes == 0 or restarted:
        drive.fail("status", Cut())
        error = await sending.failed()
        assert error.kind is Trouble.RETRY
        if restarted:
            sending.restart()
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.sent_bytes == len(PICTURE)
    assert drive.asked.count("begin") == 1


async def test_an_upload_whose_answer_got_lost_is_not_sent_again(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Unheard())
    drive.fail("status", Cut())
    await sending.failed()
    sending.restart()
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.sent_bytes == len(PICTURE)


async def test_a_session_that_is_gone_is_searched_for_before_another_is_begun(
    sending: Sending, drive: FakeDrive
) -> None:
    """Stored, never heard of, and the session forgotten: only the search finds it."""
    drive.fail("put", Unheard())
    drive.fail("status", Cut())
    await sending.failed()
    drive.sessions.clear()
    file_id = await sending.attempt()
    assert list(drive.pictures()) == [PATH]
    assert drive.asked.count("begin") == 1
    assert drive.files[file_id].data == PICTURE


async def test_what_was_kept_may_be_lost_too(sending: Sending, drive: FakeDrive) -> None:
    await sending.attempt()
    sending.kept = {}
    await sending.attempt()
    assert len(drive.pictures()) == 1
    assert drive.asked.count("begin") == 1


async def test_a_session_that_is_gone_half_way_is_begun_anew(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Cut(50_000))
    drive.fail("status", SessionGone())
    error = await sending.failed()
    assert error.kind is Trouble.RETRY
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.asked.count("begin") == 2


async def test_nothing_is_sent_before_the_session_is_kept(sending: Sending, drive: FakeDrive) -> None:
    """Else a crash in between would leave a file that nobody knows of."""

    async def broken(progress: JsonObject) -> None:
        raise DeliveryError(Trouble.RETRY, "the store is away")

    with pytest.raises(DeliveryError, match="store is away"):
        await sending.archive.store(sending.receiver, copy_of(PICTURE), broken)
    assert drive.sent_bytes == 0


@pytest.mark.parametrize("told", ["bytes=0-99999999", f"bytes=0-{len(PICTURE) - 1}", "bytes=5-9", "nonsense", "0--1"])
async def test_a_range_that_makes_no_sense_is_not_gone_on_with(sending: Sending, drive: FakeDrive, told: str) -> None:
    drive.fail("put", Lie(told))
    drive.fail("status", Lie(told))
    error = await sending.failed()
    assert error.kind is Trouble.RETRY
    assert drive.pictures() == {}
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}


async def test_a_range_that_goes_back_is_followed(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Cut(50_000))
    drive.fail("status", Lost())
    error = await sending.failed()
    assert error.kind is Trouble.RETRY
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}


async def test_a_drive_that_never_gets_further_is_left_alone(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", *[Lie("bytes=0-9")] * 100)
    error = await sending.failed()
    assert error.kind is Trouble.RETRY
    assert drive.asked.count("put") <= drive_client.RESUMES_MAX


async def test_other_bytes_are_no_copy(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Corrupted())
    error = await sending.failed()
    assert error.kind is Trouble.FAILED
    assert "other bytes" in error.message
    assert drive.pictures() == {}
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}


BUSY = [
    (Answer(403, "rateLimitExceeded"), None),
    (Answer(403, "userRateLimitExceeded"), None),
    (Answer(429, "", "33"), 33.0),
    (Answer(500, "backendError"), None),
    (Answer(503), None),
    (Cut(), None),
]


@pytest.mark.parametrize(
    ("step", "fault", "pause_sec"),
    [
        (step, *busy)
        for step in ("token", "get", "list", "folder", "begin", "put")
        for busy in BUSY
        # Signing in has no such limits.
        if step != "token" or not isinstance(busy[0], Answer) or busy[0].status != 403
    ],
)
async def test_a_busy_drive_is_tried_again_and_nothing_is_doubled(
    sending: Sending, drive: FakeDrive, step: str, fault: Answer | Cut, pause_sec: float | None
) -> None:
    if isinstance(fault, Cut) and step in ("get", "list"):
        drive.fail(step, fault)  # asked again at once, because asking changes nothing
    drive.fail(step, fault)
    if step == "put":
        # What was not taken is asked for at once; a wait that is asked for is kept.
        drive.fail("status", fault)
    error = await sending.failed()
    assert (error.kind, error.retry_after_sec) == (Trouble.RETRY, pause_sec)
    assert "said by the fake" not in error.message
    drive._faults.clear()
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.folders() == [*FOLDERS, f"{FOLDERS[-1]}/cam_1"]


async def test_a_hiccup_within_an_upload_needs_no_new_attempt(sending: Sending, drive: FakeDrive) -> None:
    drive.fail("put", Answer(503), Cut(1000), Answer(500), Cut(2000))
    await sending.failed()
    drive._faults.clear()
    drive.fail("put", Cut(1000), Cut(2000))
    await sending.attempt()
    assert drive.pictures() == {PATH: PICTURE}
    assert drive.sent_bytes == len(PICTURE)


@pytest.mark.parametrize(
    ("reason", "kind", "pause_sec", "words"),
    [
        ("storageQuotaExceeded", Trouble.RETRY, FULL_PAUSE_SEC, "shared drive"),
        ("dailyLimitExceeded", Trouble.RETRY, SPENT_PAUSE_SEC, "quota of requests"),
        ("insufficientFilePermissions", Trouble.FAILED, None, "content manager"),
        ("accessNotConfigured", Trouble.FAILED, None, "enable the Google Drive API"),
    ],
)
@pytest.mark.parametrize("step", ["begin", "put"])
async def test_a_full_drive_is_left_alone_for_long_and_says_why(
    sending: Sending, drive: FakeDrive, step: str, reason: str, kind: Trouble, pause_sec: float | None, words: str
) -> None:
    drive.fail(step, Answer(403, reason))
    if step == "put" and pause_sec is None:
        drive.fail("status", Answer(403, reason))
    error = await sending.failed()
    assert (error.kind, error.retry_after_sec) == (kind, pause_sec)
    assert words in error.message
    assert reason in error.message


async def test_a_folder_that_does_not_exist_is_refused(sending: Sending, drive: FakeDrive) -> None:
    for folder_id in ("nowhere", (await sending.attempt())):
        sending.restart()
        sending.receiver = replace(sending.receiver, config={"folder_id": folder_id})
        sending.kept = {}
        sending.attempts = 0
        error = await sending.failed(path="a/b.jpg")
        assert error.kind is Trouble.REFUSED
        assert "share the folder" in error.message


async def test_a_folder_that_was_removed_is_made_again(sending: Sending, drive: FakeDrive) -> None:
    await sending.attempt()
    drive.files = {drive.root_id: drive.files[drive.root_id]}
    sending.kept, sending.attempts = {}, 0
    await sending.attempt(delivery_uuid="another")
    assert drive.pictures() == {PATH: PICTURE}


async def test_the_root_that_was_removed_is_refused(sending: Sending, drive: FakeDrive) -> None:
    await sending.attempt()
    drive.files.clear()
    sending.kept, sending.attempts = {}, 0
    error = await sending.failed(delivery_uuid="another")
    assert error.kind is Trouble.REFUSED


async def test_a_token_is_renewed_once(sending: Sending, drive: FakeDrive) -> None:
    await sending.attempt()
    drive.expire_tokens()
    sending.kept, sending.attempts = {}, 0
    await sending.attempt(path=PATH.replace("cam_1", "cam_2"), delivery_uuid="another")
    assert drive.asked.count("token") == 2
    drive.fail("begin", Answer(401, "authError"), Answer(401, "authError"))
    sending.kept, sending.attempts = {}, 0
    error = await sending.failed(delivery_uuid="a third")
    assert (error.kind, drive.asked.count("token")) == (Trouble.FAILED, 3)


async def test_a_token_is_renewed_before_it_ends_and_when_the_key_changed(sending: Sending, drive: FakeDrive) -> None:
    await sending.archive.remove(sending.receiver, "nothing")
    await sending.clock.advance(3_400_000)
    await sending.archive.remove(sending.receiver, "nothing")
    assert drive.asked.count("token") == 1
    await sending.clock.advance(100_000)
    await sending.archive.remove(sending.receiver, "nothing")
    assert drive.asked.count("token") == 2
    sending.receiver = replace(sending.receiver, config={**sending.receiver.config, "act_as": "person@house.example"})
    await sending.archive.remove(sending.receiver, "nothing")
    assert [claims.get("sub") for claims in drive.claims] == [None, None, "person@house.example"]


async def test_a_key_that_google_does_not_know_says_so_without_showing_it(sending: Sending) -> None:
    async with FakeDrive(2) as other:
        wrong = archive_receiver(ReceiverKind.DRIVE, {"folder_id": "x"}, credentials=other.key_file)
    with pytest.raises(DeliveryError, match=r"does not let .* sign in") as failed:
        await sending.archive.remove(wrong, "nothing")
    assert failed.value.kind is Trouble.FAILED
    assert "PRIVATE KEY" not in failed.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "no key file"),
        ('{"type": "authorized_user"}', "no key file"),
        ('{"type": "service_account", "client_email": "a@b"}', "lacks private_key_id"),
        (
            '{"type": "service_account", "client_email": "a@b", "private_key_id": "k", "private_key": "hush-hush"}',
            "can't be read",
        ),
    ],
)
def test_a_key_file_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        parse_account(text)
    assert "hush" not in refused.value.message


async def test_a_picture_goes_to_no_other_address(sending: Sending, drive: FakeDrive) -> None:
    async with FakeDrive() as other:
        drive.fail("begin", Elsewhere(other.url))
        error = await sending.failed()
        assert error.kind is Trouble.FAILED
        sending.kept = {"session": f"{other.url}/upload/drive/v3/files?upload_id=s1"}
        await sending.attempt()
        assert other.asked == []
    assert drive.pictures() == {PATH: PICTURE}


async def test_removing_is_final_or_puts_into_the_bin_and_may_be_repeated(sending: Sending, drive: FakeDrive) -> None:
    file_id = await sending.attempt()
    drive.fail("delete", Answer(403, "insufficientFilePermissions"))
    await sending.archive.remove(sending.receiver, file_id)
    assert drive.files[file_id].trashed
    for _ in range(2):
        await sending.archive.remove(sending.receiver, file_id)
    assert file_id not in drive.files
    drive.fail("delete", Answer(500))
    with pytest.raises(DeliveryError) as failed:
        await sending.archive.remove(sending.receiver, file_id)
    assert failed.value.kind is Trouble.RETRY


async def test_a_drive_that_never_answers_is_given_up(
    sending: Sending, drive: FakeDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive_client, "UPLOAD_TIMEOUT_SEC", 0.2)
    stuck = Wait(), Wait()
    drive.fail("put", stuck[0])
    drive.fail("status", stuck[1])
    error = await asyncio.wait_for(sending.failed(), 60)
    assert "no answer" in error.message
    for one in stuck:
        one.released.set()
    monkeypatch.undo()
    await sending.attempt()
    assert list(drive.pictures()) == [PATH]
