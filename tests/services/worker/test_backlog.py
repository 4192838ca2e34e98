import itertools

from hypothesis import given
from hypothesis import strategies as st

from camserver.services.worker.backlog import Backlog, Entry
from camserver.services.worker.spool_files import LookName
from tests.rig.clock import START_MS
from tests.services.worker.build import look


def entry(
    seq: int,
    camera_id: str = "cam_1",
    *,
    quiet: bool = True,
    in_memory: bool = False,
    apart_ms: int = 60_000,
) -> Entry:
    """The seq-th look of a camera; of one that is looked at every minute."""
    made = look(seq, camera_id, quiet=quiet, captured_at=START_MS + apart_ms * seq)
    return Entry(LookName.of(made), 1000, in_memory=made if in_memory else None)


def filled(*entries: Entry) -> Backlog:
    backlog = Backlog()
    for one in entries:
        assert backlog.add(one)
    return backlog


def order(backlog: Backlog, fresh_first: bool) -> list[tuple[str, int]]:
    taken = []
    while (one := backlog.take(0, fresh_first)) is not None:
        taken.append((one.name.camera_id, one.name.seq))
    return taken


def test_newest_of_each_camera_comes_first_then_the_oldest() -> None:
    backlog = filled(*(entry(seq, camera) for seq in (1, 2, 3) for camera in ("a", "b")))
    assert order(backlog, fresh_first=True) == [("a", 3), ("b", 3), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_the_last_half_minute_of_each_camera_goes_first_in_its_order() -> None:
    looks = [entry(seq, camera, apart_ms=10_000) for seq in range(1, 7) for camera in ("a", "b")]
    backlog = filled(*looks)
    expected = [(camera, seq) for seq in range(3, 7) for camera in ("a", "b")]
    assert order(backlog, fresh_first=True) == [*expected, ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_one_being_sent_is_not_waited_for() -> None:
    backlog = filled(*(entry(seq, apart_ms=1000) for seq in (1, 2, 3)))
    taken = [backlog.take(0, fresh_first=True) for _ in range(2)]
    assert [one.name.seq for one in taken if one] == [1, 2]
    assert taken[0] is not None
    backlog.give_back(taken[0])
    assert [seq for _, seq in order(backlog, fresh_first=True)] == [1, 3]


def test_backlog_lane_takes_the_oldest_first() -> None:
    backlog = filled(*(entry(seq, camera) for seq in (1, 2) for camera in ("a", "b")))
    assert order(backlog, fresh_first=False) == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_camera_keeps_its_turn_when_a_newer_look_comes() -> None:
    backlog = filled(entry(1, "a"), entry(1, "b"), entry(2, "a"))
    assert order(backlog, fresh_first=True)[:2] == [("a", 2), ("b", 1)]


def test_look_given_back_is_in_front_again() -> None:
    backlog = filled(entry(1), entry(2), entry(3))
    taken = backlog.take(0, fresh_first=False)
    assert taken is not None
    backlog.give_back(taken)
    assert order(backlog, fresh_first=False) == [("cam_1", 1), ("cam_1", 2), ("cam_1", 3)]


def test_several_given_back_in_any_order_are_sent_in_theirs() -> None:
    for turn in itertools.permutations(range(3)):
        backlog = filled(*(entry(seq) for seq in range(1, 6)))
        taken = [backlog.take(0, fresh_first=False) for _ in range(3)]
        for number in turn:
            one = taken[number]
            assert one is not None
            backlog.give_back(one)
        assert [seq for _, seq in order(backlog, fresh_first=False)] == [1, 2, 3, 4, 5]


def test_the_newest_given_back_does_not_go_before_the_backlog() -> None:
    backlog = filled(*(entry(seq) for seq in range(1, 6)))
    taken = backlog.take(0, fresh_first=True)
    assert taken is not None
    assert taken.name.seq == 5
    backlog.give_back(taken)
    assert [seq for _, seq in order(backlog, fresh_first=False)] == [1, 2, 3, 4, 5]


def test_a_look_moved_to_disk_keeps_its_place() -> None:
    held = entry(2, in_memory=True)
    backlog = filled(entry(1), held, entry(3))
    assert backlog.first_in_memory() is held
    assert backlog.move_to_disk(held, 4096)
    assert not backlog.move_to_disk(held, 4096)
    assert (backlog.memory_looks, backlog.memory_bytes, backlog.disk_bytes) == (0, 0, 2000 + 4096)
    assert backlog.first_in_memory() is None
    first = backlog.to_drop(quiet_only=True)
    assert first is not None
    assert first.name.seq == 1
    assert [seq for _, seq in order(backlog, fresh_first=False)] == [1, 2, 3]


def test_newest_given_back_is_still_the_newest() -> None:
    backlog = filled(entry(1), entry(2))
    taken = backlog.take(0, fresh_first=True)
    assert taken is not None
    backlog.give_back(taken)
    assert order(backlog, fresh_first=True) == [("cam_1", 2), ("cam_1", 1)]


def test_newer_look_meanwhile_makes_the_one_given_back_an_old_one() -> None:
    backlog = filled(entry(1), entry(2))
    taken = backlog.take(0, fresh_first=True)
    assert taken is not None
    backlog.add(entry(3))
    backlog.give_back(taken)
    assert order(backlog, fresh_first=True)[0] == ("cam_1", 3)


def test_resting_look_is_not_taken_before_its_time() -> None:
    backlog = filled(entry(1), entry(2))
    taken = backlog.take(0, fresh_first=False)
    assert taken is not None
    taken.not_before_boot_ms = 500
    backlog.give_back(taken)
    assert backlog.next_wake_boot_ms() == 500
    second = backlog.take(499, fresh_first=False)
    assert second is not None
    assert second.name.seq == 2
    assert backlog.take(499, fresh_first=False) is None
    assert backlog.take(500, fresh_first=False) is taken
    assert backlog.next_wake_boot_ms() is None


def test_look_that_was_removed_does_not_come_back() -> None:
    backlog = filled(entry(1))
    taken = backlog.take(0, fresh_first=True)
    assert taken is not None
    backlog.remove(taken)
    backlog.remove(taken)
    backlog.give_back(taken)
    assert order(backlog, fresh_first=True) == []
    assert (backlog.looks, backlog.disk_bytes) == (0, 0)


def test_same_look_is_not_added_twice() -> None:
    backlog = filled(entry(1))
    assert not backlog.add(entry(1))
    assert backlog.looks == 1


def test_oldest_quiet_goes_first_then_the_oldest_and_never_one_being_sent() -> None:
    backlog = filled(entry(1, quiet=False), entry(2), entry(3), entry(4, quiet=False))
    sending = backlog.take(0, fresh_first=False)
    assert sending is not None
    dropped = []
    while (one := backlog.to_drop(quiet_only=False)) is not None:
        dropped.append(one.name.seq)
        backlog.remove(one)
    assert dropped == [2, 3, 4]
    assert backlog.count_of(sending.lease) == 1


def test_quiet_look_pushes_out_quiet_ones_only_and_memory_is_apart_from_disk() -> None:
    backlog = filled(entry(1, quiet=False), entry(2, in_memory=True))
    assert backlog.to_drop(quiet_only=True) is None
    in_memory = backlog.to_drop(quiet_only=True, in_memory=True)
    assert in_memory is not None
    assert in_memory.name.seq == 2
    assert (backlog.disk_bytes, backlog.memory_bytes, backlog.memory_looks) == (1000, 1000, 1)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from("abc"), st.booleans(), st.booleans()),
            st.tuples(st.sampled_from(["fresh", "oldest", "drop", "back", "rest", "sent", "pass_time"])),
        ),
        max_size=80,
    )
)
def test_no_look_is_lost_doubled_or_given_to_two(steps: list[tuple[object, ...]]) -> None:
    backlog = Backlog()
    waiting: dict[tuple[str, int], Entry] = {}
    sending: list[Entry] = []
    boot_ms = 0
    for number, step in enumerate(steps, start=1):
        if step[0] == "add":
            camera_id, quiet, in_memory = str(step[1]), bool(step[2]), bool(step[3])
            one = entry(number, camera_id, quiet=quiet, in_memory=in_memory)
            assert backlog.add(one)
            waiting[(camera_id, number)] = one
        elif step[0] in ("fresh", "oldest"):
            taken = backlog.take(boot_ms, step[0] == "fresh")
            if taken is not None:
                assert waiting.pop((taken.name.camera_id, taken.name.seq)) is taken
                sending.append(taken)
        elif step[0] == "drop":
            dropped = backlog.to_drop(quiet_only=False)
            if dropped is not None:
                assert waiting.pop((dropped.name.camera_id, dropped.name.seq)) is dropped
                backlog.remove(dropped)
        elif step[0] == "pass_time":
            boot_ms += 10
        elif sending:
            one = sending.pop(0)
            if step[0] == "sent":
                backlog.remove(one)
            else:
                one.not_before_boot_ms = boot_ms + 15 if step[0] == "rest" else 0
                backlog.give_back(one)
                waiting[(one.name.camera_id, one.name.seq)] = one
        left = [*waiting.values(), *sending]
        assert backlog.looks == len(left)
        assert backlog.disk_bytes == sum(one.size_bytes for one in left if one.in_memory is None)
        assert backlog.memory_bytes == sum(one.size_bytes for one in left if one.in_memory is not None)
    for one in sending:
        backlog.give_back(one)
        waiting[(one.name.camera_id, one.name.seq)] = one
    rest = []
    while (taken := backlog.take(boot_ms + 1000, fresh_first=True)) is not None:
        rest.append((taken.name.camera_id, taken.name.seq))
    assert sorted(rest) == sorted(waiting)
