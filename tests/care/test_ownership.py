"""root's commands on the data of the services' user leave nothing behind that this user can't use."""

import asyncio
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from camserver import cli
from camserver.care import backup
from camserver.care.ownership import handed_over
from camserver.config import make_secrets
from camserver.objects.local import LocalObjects
from camserver.store import open_store
from tests.care.test_backup import furnish, quiet, settings_in, wanted
from tests.rig.ports import free_port
from tests.rig.templates import SqliteTemplate

SERVICE = 65_534  # any user but root

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_what_root_restores_and_checks_is_the_services(sqlite_template: SqliteTemplate, tmp_path: Path) -> None:
    url = sqlite_template.fresh()
    here = settings_in(tmp_path, url)
    make_secrets(here)

    async def make() -> None:
        store = await open_store(url)
        await furnish(store, LocalObjects(here.objects.dir))
        await backup.back_up(here, wanted(tmp_path / "b", secrets=tmp_path / "s.json"), quiet)
        await store.close()

    asyncio.run(make())
    data = tmp_path / "elsewhere"
    data.mkdir()
    os.chown(data, SERVICE, SERVICE)
    for words in (
        ("restore", str(tmp_path / "b"), "--secrets", str(tmp_path / "s.json")),
        ("restore", str(tmp_path / "b"), "--force"),
        ("check", "--fix"),
        ("db", "upgrade"),
    ):
        done = CliRunner().invoke(cli.main, ["--data-dir", str(data), *words])
        assert done.exit_code == 0 or words[0] == "check", done.output
        assert owners(data) == {SERVICE}, words
    assert len(list(data.glob("camserver.db.before-*"))) == 1
    sqlite_template.discard(url)


def test_what_a_command_makes_without_a_server_is_the_services(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, SERVICE, SERVICE)
    for words in (("setup-link",), ("user", "add", "kato"), ("site", "add", "Shop"), ("user", "list")):
        done = CliRunner(env={"CAMSERVER_WEB_PORT": str(free_port())}).invoke(
            cli.main, ["--data-dir", str(data), *words]
        )
        assert done.exit_code == 0, done.output
        assert owners(data) == {SERVICE}, words


def test_pictures_are_spared_where_there_may_be_millions(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    picture = settings.objects.dir / "e1" / "x.jpg"
    picture.parent.mkdir(parents=True)
    picture.write_text("x")
    os.chown(settings.server.data_dir, SERVICE, SERVICE)
    with handed_over(settings, with_objects=False):
        pass
    assert [path.stat().st_uid for path in (settings.objects.dir, picture)] == [SERVICE, 0]
    with handed_over(settings):
        pass
    assert picture.stat().st_uid == SERVICE


def test_nothing_from_elsewhere_is_given_away(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    elsewhere = tmp_path / "of-root"
    elsewhere.write_text("x")
    settings.server.data_dir.mkdir(parents=True)
    os.chown(settings.server.data_dir, SERVICE, SERVICE)
    os.link(elsewhere, settings.server.data_dir / "second-name")
    (settings.server.data_dir / "link").symlink_to(elsewhere)
    with handed_over(settings):
        (settings.server.data_dir / "made").write_text("x")
    assert elsewhere.stat().st_uid == 0
    assert (settings.server.data_dir / "made").stat().st_uid == SERVICE
