"""The file of an enrolled worker: whole, private, and refused when it is neither."""

from pathlib import Path

import pytest

from camserver.base.errors import DataUnusable
from camserver.domain.certificates import WorkerName
from camserver.services.worker import identity_file
from tests.rig.identities import new_authority, new_identity

NAME = WorkerName("tenant", "site", "shop-1")


def test_what_is_written_is_read_again_by_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "identity"
    assert identity_file.read(folder) is None
    authority = new_authority()
    enrolled = new_identity(NAME, authority)
    identity_file.write(folder, enrolled)
    assert identity_file.read(folder) == enrolled
    assert enrolled.ca_pem == authority.pem
    path = identity_file.path_in(folder)
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    identity_file.write(folder, new_identity(NAME))
    assert [one.name for one in folder.iterdir()] == [path.name], "nothing is left of the way there"
    assert identity_file.read(folder) != enrolled


def test_the_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(new_identity(NAME))


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    identity_file.write(tmp_path, new_identity(NAME))
    identity_file.path_in(tmp_path).chmod(0o640)
    with pytest.raises(DataUnusable, match="chmod 600"):
        identity_file.read(tmp_path)


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN CERTIFICATE-----\n"])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = identity_file.path_in(tmp_path)
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(DataUnusable, match="enroll this worker again"):
        identity_file.read(tmp_path)


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataUnusable, match="can't be written"):
        identity_file.write(tmp_path / "file" / "identity", new_identity(NAME))
