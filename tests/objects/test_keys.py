"""Keys follow from what a frame's row holds, and lead back to the frame."""

from hypothesis import given
from hypothesis import strategies as st

from camserver.objects.keys import DAY_MS, DRAFT_MARK, Kind, epoch_prefix, frame_key, frame_uuid_of, is_draft

UUID = "0198c0de-0000-7000-8000-000000000001"
numbers = st.integers(1, 2**62)


@given(numbers, numbers, numbers, st.integers(0, 10**15), st.uuids(), st.sampled_from(Kind))
def test_a_key_leads_back_to_its_frame(
    epoch: int, tenant: int, camera: int, at_ms: int, frame_uuid: object, kind: Kind
) -> None:
    key = frame_key(epoch, tenant, camera, at_ms, str(frame_uuid), kind)
    assert frame_uuid_of(key) == str(frame_uuid)
    assert key.startswith(epoch_prefix(epoch))
    assert not is_draft(key)
    assert is_draft(key + DRAFT_MARK + "abcd")
    assert frame_uuid_of(key + DRAFT_MARK + "abcd") == str(frame_uuid)


def test_a_key_says_whose_and_when() -> None:
    assert frame_key(7, 2, 30, 5 * DAY_MS + 1, UUID, Kind.INFER) == f"e7/t2/c30/d5/{UUID}.infer.jpg"


def test_an_epochs_prefix_is_no_other_epochs() -> None:
    assert not frame_key(70, 1, 1, 0, UUID, Kind.FULL).startswith(epoch_prefix(7))
