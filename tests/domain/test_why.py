"""Every reason has its words, and every state of a camera an answer."""

import string
from dataclasses import replace

import pytest

from camserver.domain.assignment_types import CameraNeed, Quota, Why, WorkerOffer
from camserver.domain.why import WORDS, CameraFacts, Explanation, WorkerFacts, explain

T0 = 1_800_000_000_000
CAMERA = CameraFacts(
    camera_id="gate", site="main", is_enabled=True, do_not_process=False, has_stream=True, state="ORPHANED",
    reason="", holder_key=None, holder_id=None, generation=3, lease_expires_at=None, is_stopping=False,
    is_started=False, is_acked=False, next_attempt_at=None, failures=0, auth_failures=0, pinned_id=None,
    needs_labels=(("gpu", "yes"),),
)  # fmt: skip
HELD = replace(CAMERA, state="ACTIVE", holder_key=1, holder_id="w-1", lease_expires_at=T0 + 60_000)
NEED = CameraNeed(1, 1, 1, 3)
# Of a person's actions or of cameras that are held; nobody waits for them.
NOT_WAITING = {
    Why.LEAST_LOADED, Why.FULLEST, Why.PINNED, Why.ASKED, Why.HELD, Why.STOPPING, Why.DRAIN_NO_ROOM, Why.MOVES_LATER,
    Why.DRAINED, Why.REBALANCED, Why.SAME_DEVICE,
}  # fmt: skip


def told(
    camera: CameraFacts = CAMERA,
    need: CameraNeed = NEED,
    offer: WorkerOffer | None = None,
    quota: Quota | None = None,
) -> Explanation:
    offers = () if offer is None else (offer,)
    workers = tuple(
        WorkerFacts(one.worker_key, f"w-{one.worker_key}", one.is_present, one.is_draining, one.used, one.slots)
        for one in offers
    )
    return explain(camera, need, workers, offers, quota, T0)


def worker(used: int = 0, **changes: object) -> WorkerOffer:
    return replace(WorkerOffer(1, 1, 1, 2, used), **changes)  # type: ignore[arg-type]  # the names are its own


def test_every_reason_to_wait_has_words() -> None:
    assert {why.value for why in set(Why) - NOT_WAITING} <= WORDS.keys()


@pytest.mark.parametrize("code", sorted(WORDS))
def test_both_languages_name_only_facts_of_each_other(code: str) -> None:
    def names(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name} - {"site"}

    phrase = WORDS[code]
    assert names(phrase.ja) == names(phrase.en)
    assert any(ord(letter) > 0x3000 for letter in phrase.ja)


def test_who_has_how_many_slots() -> None:
    lines = told(offer=worker(used=2)).lines
    assert [line.code for line in lines] == ["all_full", "room"]
    assert lines[0].text.en == "All workers of site main are full (2 of 2 slots)."
    assert lines[1].text.ja == "w-1: 2 台中 2 台を使用"
    assert [line.code for line in told(offer=worker(is_present=False)).lines] == ["all_away", "room_away"]
    assert [line.code for line in told(offer=worker(is_draining=True)).lines] == ["all_draining", "room_draining"]


ANSWERS = [
    (replace(CAMERA, is_enabled=False), "disabled"),
    (replace(CAMERA, has_stream=False), "no_stream"),
    (CAMERA, "no_worker"),
    (HELD, "running"),
    (replace(HELD, is_stopping=True), "stopping"),
    (replace(HELD, state="PENDING"), "not_sent"),
    (replace(HELD, state="PENDING", is_started=True), "not_acked"),
    (replace(HELD, state="PENDING", is_started=True, is_acked=True), "starting"),
    (replace(HELD, state="PENDING", failures=2), "failing"),
    (replace(HELD, state="PAUSED", failures=5), "paused_fault"),
    (replace(HELD, state="PAUSED"), "paused"),
]


@pytest.mark.parametrize(("camera", "code"), ANSWERS, ids=[code for _, code in ANSWERS])
def test_the_first_line_is_the_answer(camera: CameraFacts, code: str) -> None:
    answer = told(camera)
    assert answer.lines[0].code == code
    assert answer.is_running is (code == "running")


def test_a_holder_that_is_away_does_not_run_its_camera() -> None:
    answer = told(HELD, offer=worker(is_present=False))
    assert ([line.code for line in answer.lines], answer.is_running) == (["holder_away", "running", "lease"], False)


def test_a_lease_that_ran_out_is_told_with_what_follows() -> None:
    camera = replace(HELD, state="ORPHANED", lease_expires_at=T0 - 5_000, failures=1, auth_failures=1)
    assert [line.code for line in told(camera).lines] == ["no_worker", "lease_ran_out", "auth"]
    assert told(camera, offer=worker()).lines[0].code == "about_to_start"


def test_pins_quotas_and_pauses() -> None:
    pinned = replace(CAMERA, pinned_id="w-7")
    lines = told(pinned, replace(NEED, pinned_worker_key=7), worker()).lines
    assert lines[0].text.en == "It is pinned to worker w-7, which is away."
    assert told(quota=Quota(1, 3, 3), offer=worker()).lines[0].text.en.startswith("The quota is reached: 3")
    waiting = told(need=replace(NEED, next_attempt_at=T0 + 9_000), offer=worker())
    assert "9 s" in waiting.lines[0].text.en
    labelled = told(need=replace(NEED, labels=frozenset({("gpu", "yes")})), offer=worker())
    assert "gpu=yes" in labelled.lines[0].text.en


def test_a_stream_that_fails_beside_one_that_works_is_named() -> None:
    found = told(replace(HELD, stream_fault=("sub", "no_video")), offer=worker(used=1))
    assert found.is_running
    [line] = [line for line in found.lines if line.code == "stream_fault"]
    assert line.text.en == "Its sub stream fails, the other one works: no_video."


def test_looks_that_wait_for_somebody_who_watches_are_no_fault() -> None:
    found = told(replace(HELD, stream_fault=("main", "watched_live")), offer=worker(used=1))
    assert found.is_running
    [line] = [line for line in found.lines if line.code in ("stream_fault", "watched_live")]
    assert "being watched live" in line.text.en
    assert "ライブ視聴中" in line.text.ja
