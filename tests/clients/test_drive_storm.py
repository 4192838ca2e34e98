"""Whatever Google Drive does, in any order, an upload ends as one whole file."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.domain.deliveries import DeliveryError
from tests.clients.archiving import PATH
from tests.clients.test_drive import PICTURE, Sending
from tests.fakes.drive import Answer, Corrupted, Cut, FakeDrive, Lie, Lost, SessionGone, Unheard
from tests.fakes.drive.faults import Fault
from tests.rig.effort import times

ATTEMPTS_MAX = 60

busy = st.sampled_from(
    [Answer(503), Answer(429, "", "1"), Answer(403, "userRateLimitExceeded"), Answer(401), Unheard(), Cut()]
)
of_put = st.one_of(
    busy,
    st.integers(0, len(PICTURE) - 1).map(Cut),
    st.sampled_from([Lost(), SessionGone(), Corrupted(), Lie("bytes=0-9"), Lie(f"bytes=0-{len(PICTURE)}"), Lie("?")]),
)
of_status = st.one_of(busy, st.sampled_from([Lost(), SessionGone(), Lie(None), Lie("bytes=5-1")]))
troubles = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["token", "get", "list", "folder", "begin", "delete"]), busy),
        st.tuples(st.just("put"), of_put),
        st.tuples(st.just("status"), of_status),
    ),
    max_size=10,
)


@settings(max_examples=times(20, 300))
@given(faults=troubles, restarts=st.sets(st.integers(1, 8)))
def test_one_whole_file_after_any_storm(faults: list[tuple[str, Fault]], restarts: set[int]) -> None:
    asyncio.run(_through(faults, restarts))


async def _through(faults: list[tuple[str, Fault]], restarts: set[int]) -> None:
    async with FakeDrive() as drive:
        sending = Sending(drive)
        for step, fault in faults:
            drive.fail(step, fault)
        try:
            for number in range(1, ATTEMPTS_MAX):
                if number in restarts:
                    sending.restart()
                try:
                    file_id = await sending.attempt()
                    break
                except DeliveryError:
                    continue
            else:
                raise AssertionError("it never arrived")
        finally:
            await sending.http.close()
        assert drive.pictures() == {PATH: PICTURE}
        assert drive.files[file_id].data == PICTURE
