"""Commands that root runs on the installation of another user, such as that of the units: what they make is handed
over to that user, whose services could neither read nor write it otherwise."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from camserver.config import Settings

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def handed_over(settings: "Settings", *, with_objects: bool = True) -> Iterator[None]:
    """Around work that writes into the data folder. It happens after an error, too.

    `with_objects` False: pictures and clips, of which there may be millions, are not looked at.
    """
    try:
        yield
    finally:
        _hand_over(settings, with_objects)


def _hand_over(settings: "Settings", with_objects: bool) -> None:
    data_dir = settings.server.data_dir
    if os.geteuid() != 0 or not data_dir.is_dir():
        return
    owner = data_dir.stat()
    if owner.st_uid == 0:
        return
    places = {data_dir, settings.server.secrets_dir, settings.worker.identity_dir}
    if settings.objects.url is None and with_objects:
        places.add(settings.objects.dir)
    if settings.store.url.path is not None:
        places.add(settings.store.url.path.parent)
    for place in places:
        if place == data_dir or place.is_relative_to(data_dir) or _is_of(place, owner.st_uid):
            _give(place, owner.st_uid, owner.st_gid, None if with_objects else settings.objects.dir)


def _is_of(place: Path, uid: int) -> bool:
    return place.is_dir() and place.stat().st_uid == uid


def _give(place: Path, uid: int, gid: int, spared: Path | None) -> None:
    """All of a place, but for what is in the folder `spared`."""
    if not place.is_dir():
        return
    for path, folders, names, descriptor in os.fwalk(place):
        if os.fstat(descriptor).st_uid == 0:
            os.fchown(descriptor, uid, gid)
        for name in (*folders, *names):
            with suppress(OSError):  # a link, or gone meanwhile
                _give_one(name, descriptor, uid, gid)
        folders[:] = [name for name in folders if spared is None or Path(path, name) != spared]


def _give_one(name: str, folder: int, uid: int, gid: int) -> None:
    """Only what is root's, and by what was opened: the folder's owner may put something else in its place meanwhile,
    or a second name of a file elsewhere."""
    descriptor = os.open(name, _OPEN, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        is_ours = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1)
        if found.st_uid == 0 and is_ours:
            os.fchown(descriptor, uid, gid)
    finally:
        os.close(descriptor)
