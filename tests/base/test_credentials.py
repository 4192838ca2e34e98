"""Camera credentials at rest."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.credentials import key_id, open_sealed, seal
from camserver.base.errors import DataUnusable

KEY = bytes(range(32))


@given(st.binary(max_size=500))
def test_what_was_sealed_opens_for_its_camera(plaintext: bytes) -> None:
    sealed = seal(KEY, 1, "cam_1", plaintext)
    assert open_sealed(KEY, 1, "cam_1", sealed) == plaintext


@pytest.mark.parametrize(("tenant_id", "camera_id"), [(2, "cam_1"), (1, "cam_2")])
def test_it_does_not_open_for_another_camera(tenant_id: int, camera_id: str) -> None:
    with pytest.raises(DataUnusable, match="belong to another one"):
        open_sealed(KEY, tenant_id, camera_id, seal(KEY, 1, "cam_1", b"secret"))


def test_a_changed_byte_is_noticed() -> None:
    sealed = seal(KEY, 1, "cam_1", b"secret")
    for index in range(len(sealed.ciphertext)):
        changed = bytearray(sealed.ciphertext)
        changed[index] ^= 1
        with pytest.raises(DataUnusable, match="damaged"):
            open_sealed(KEY, 1, "cam_1", replace(sealed, ciphertext=bytes(changed)))


def test_another_key_is_named_without_being_shown() -> None:
    other = bytes(32)
    with pytest.raises(DataUnusable, match=key_id(other)):
        open_sealed(KEY, 1, "cam_1", seal(other, 1, "cam_1", b"secret"))
    assert key_id(KEY) != key_id(other)
    assert KEY.hex() not in key_id(KEY)


def test_sealing_twice_never_gives_the_same() -> None:
    assert seal(KEY, 1, "cam_1", b"secret") != seal(KEY, 1, "cam_1", b"secret")
