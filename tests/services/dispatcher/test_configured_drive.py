"""The receiver that [drive] of the settings stands for: made, changed, left as people want it, switched off again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from camserver.config.secret_files import make_secrets
from camserver.services.dispatcher.configured import DRIVE_NAME, keep_configured
from camserver.services.dispatcher.receivers import ReceiverBook
from camserver.store import receivers
from camserver.store.receivers import ReceiverChange
from tests.fakes.drive.server import account_key, key_file
from tests.services.dispatcher.stage import Stage
from tests.services.dispatcher.test_notifying import admin

KEY, OTHER_KEY = (key_file(account_key(number)) for number in (1, 2))


async def started(stage: Stage, **drive: Any) -> dict[str, tuple[bool, dict[str, Any], list[str]]]:
    """The receivers after a start with these settings: switched on, config, secrets."""
    settings = replace(stage.settings, drive=replace(stage.settings.drive, **drive))
    key = make_secrets(settings).credential_key_bytes()
    await keep_configured(stage.store, stage.clock, settings, key)
    book = ReceiverBook(stage.store, stage.clock, key)
    await book.refresh()
    return {
        one.name: (one.enabled, dict(one.config), [secret.reveal() for secret in one.secrets.values()])
        for one in book.everywhere
    }


async def switch(stage: Stage, enabled: bool) -> None:
    [found] = await stage.store.read(receivers.everywhere)
    person = stage.store.as_(replace(admin(stage), tenant_id=found.tenant_id))
    change = ReceiverChange(enabled=enabled)
    await person.write(receivers.change, found.receiver_uuid, change, "", stage.clock.now_ms())


async def test_the_receiver_follows_the_settings(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(KEY)
    named = {"credentials_file": file, "folder_id": "abc"}
    assert await started(stage) == {}
    assert await started(stage, **named) == {DRIVE_NAME: (True, {"folder_id": "abc"}, [KEY])}
    [first] = await stage.store.read(receivers.everywhere)
    await started(stage, **named)
    assert await stage.store.read(receivers.everywhere) == (first,)
    # Whoever switches it off means it.
    await switch(stage, False)
    assert await started(stage, **named) == {DRIVE_NAME: (False, {"folder_id": "abc"}, [KEY])}
    await switch(stage, True)
    moved = {"credentials_file": file, "folder_id": "def"}
    assert await started(stage, **moved) == {DRIVE_NAME: (True, {"folder_id": "def"}, [KEY])}
    file.write_text(OTHER_KEY)
    assert await started(stage, **named) == {DRIVE_NAME: (True, {"folder_id": "abc"}, [OTHER_KEY])}
    assert await started(stage) == {DRIVE_NAME: (False, {"folder_id": "abc"}, [])}
    assert await started(stage, **named) == {DRIVE_NAME: (True, {"folder_id": "abc"}, [OTHER_KEY])}


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("text", [None, "{", "[]", "\udcff"])
async def test_a_file_that_is_no_key_makes_no_receiver(stage: Stage, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "key.json"
    if text is not None:
        file.write_bytes(text.encode(errors="surrogateescape"))
    assert await started(stage, credentials_file=file, folder_id="abc") == {}
