"""A small installation that documented commands are run against: a server, two workers and an analyzer as processes,
cameras that show scenes, and files by the names that the pages use.

Commands run in this process, in the stage's folder. Before one runs, what it names is there; names of what it would
make or spoil are replaced, so that no command depends on another.
"""

import asyncio
import csv
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
from click.testing import CliRunner, Result

from camserver import cli
from camserver.base.errors import CamError
from camserver.clients.local_server import LocalServer
from camserver.config.secret_files import LOCAL_ADMIN_TOKEN
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.pictures import jpeg
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher, toml

WORKERS = ("shop-1", "shop-2")
# The first one is watched; the others are there to be changed.
CAMERAS = ("entrance", "yard", "shop", "lot", "gate", "car_park")
PATIENCE_SEC = 120.0
PASSWORD = "a-password-nobody-guesses-41"
LOGIN = "owner"
ANALYZER = "http://127.0.0.1:9000"  # as the pages say
# Folders that a page writes to, and that are below the stage's own here.
OUTSIDE = ("/mnt/", "/root/", "/var/log/", "/tmp/")
PICTURES = ("picture.jpg", "entrance.jpg", "somebody.jpg", "unclear.jpg", "lot.jpg", "lot-before.jpg")
SECRETS = {
    "webhook": "url=http://127.0.0.1:9/\n",
    "slack": "webhook_url=https://hooks.example.com/x\n",
    "s3": "secret_access_key=x\n",
    "mqtt": "password=x\n",
}


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = Launcher(folder)
        self.known: dict[str, str] = {}  # what EVENT, FRAME and the like are here
        self.for_cases: dict[str, str] = {}  # other ones: what is in a case can't be shared any more
        self._ports = {name: free_port() for name in ("web", "control", "tls")}
        self._analyzer_url = ""
        self._numbers = itertools.count(1)

    # Beginning ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        asyncio.run(self._start())
        self._sign_up()

    def close(self) -> None:
        asyncio.run(self.launcher.close())

    async def _start(self) -> None:
        analyzer = await RemoteAnalyzer.start(self.launcher, self.folder / "vocabulary.json")
        self._analyzer_url = analyzer.url
        settings = self._settings()
        (self.folder / "camserver.toml").write_text(toml(settings))
        server = self.launcher.camserver("server", settings=settings)
        await server.until_ready(f"http://{LOOPBACK}:{self._ports['web']}/readyz", PATIENCE_SEC)
        self._write_files()
        for name in CAMERAS:
            await self._add_camera(name)
        for name in WORKERS:
            own = {**settings["server"], "data_dir": str(self.folder / name)}
            worker = {"name": name, "server_url": f"http://{LOOPBACK}:{self._ports['control']}"}
            self.launcher.camserver("worker", settings={**settings, "server": own, "worker": worker})
        await poll_async(self._something_happened, "an event", PATIENCE_SEC)
        await poll_async(self._workers_are_in, "the workers", PATIENCE_SEC)

    def _settings(self) -> dict[str, dict[str, object]]:
        return {
            "server": {"data_dir": str(self.folder / "data"), "secrets_dir": str(self.folder / "secrets")},
            "web": {"port": self._ports["web"]},
            "control": {"port": self._ports["control"], "tls_host": LOOPBACK, "tls_port": self._ports["tls"]},
            "analyzer": {"url": self._analyzer_url},
            "archive": {"folders": [str(self.folder / "mnt")]},
            "gate": {"rule": "threshold"},
            "log": {"format": "json"},
        }

    def _write_files(self) -> None:
        for name in (
            "pictures",
            "mnt/nas/camserver",
            "mnt/archive",
            "mnt/backups",
            "root",
            "var/log",
            "tmp",
            "frigate",
        ):
            (self.folder / name).mkdir(parents=True)
        for number, scene in enumerate((1, 4, 0, 7)):
            (self.folder / "pictures" / f"{number}.jpg").write_bytes(jpeg(scene=scene, size=(160, 120)))
        for name in PICTURES:
            (self.folder / name).write_bytes(jpeg(scene=1, size=(160, 120)))
        (self.folder / "cameras.csv").write_text("camera_id,name,url\nside,Side,rtsp://192.0.2.30/stream1\n")
        (self.folder / "var/log/camserver.log").write_text("{}\n")
        for name in ("token.txt", "model.key", "words.json", "yard-yolo-1.2.0.zip", "root/camserver-secrets.json"):
            (self.folder / name).write_text("x")
        for name in (
            "mnt/backups/monday",
            "mnt/backups/monday.tar",
            "mnt/backups/before-upgrade",
            "yard-yolo",
            "faces",
            "folder",
        ):
            (self.folder / name).mkdir()
        frigate = "cameras:\n  back:\n    ffmpeg:\n      inputs:\n"
        frigate += (
            "        - path: rtsp://viewer:{FRIGATE_RTSP_PASSWORD}@192.0.2.31/stream1\n          roles: [detect]\n"
        )
        for name in ("config.yml", "frigate/config.yml"):
            (self.folder / name).write_text(frigate)
        with (self.folder / "answers.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [["title"], ["", "", "", "kind"], ["", "", "", "is it kind"], [], [1, "", "thanks"]]
            )

    async def _something_happened(self) -> bool:
        events = (await self._call("GET", "/api/events"))["events"]
        if not events:
            return False
        if len(events) < 2 or any(None in (one["incident_uuid"], one["best_frame_uuid"]) for one in events):
            return False
        first, second = events[-1], events[-2]
        self.known = {
            "EVENT": first["event_uuid"],
            "INCIDENT": first["incident_uuid"],
            "FRAME": first["best_frame_uuid"],
        }
        self.for_cases = {"EVENT": second["event_uuid"], "FRAME": second["best_frame_uuid"]}
        return True

    async def _workers_are_in(self) -> bool:
        listed = (await self._call("GET", "/api/workers"))["workers"]
        return {one["worker_id"] for one in listed if one["is_connected"]} == set(WORKERS)

    # What a command needs ----------------------------------------------------------------------------------------

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        api = LocalServer(f"http://{LOOPBACK}:{self._ports['web']}", self.folder / "secrets" / LOCAL_ADMIN_TOKEN)
        return await api._call(method, path, body)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """None when the server refuses, because it is there already, or is not."""
        try:
            return asyncio.run(self._call(method, path, body))
        except CamError:
            return None

    async def _add_camera(self, name: str) -> None:
        interval_sec = 1 if name == CAMERAS[0] else 60
        source = {"url": f"file://{self.folder / 'pictures'}"}
        body = {"camera_id": name, "name": name, "source": source, "polling_interval_sec": interval_sec}
        await self._call("POST", "/api/cameras", body)

    def fresh(self, name: str) -> str:
        """A name that nobody has yet; of a file, with the same ending."""
        path = Path(name)
        return str(path.with_stem(f"{path.stem}-{next(self._numbers)}"))

    def camera(self) -> str:
        """A camera to be changed or removed."""
        name = f"scratch_{next(self._numbers)}"
        asyncio.run(self._add_camera(name))
        return name

    def made(self, *words: str, stdin: str = "") -> str:
        """What a command printed that must succeed, to have something for another one."""
        result = self.run(words, stdin=stdin)
        assert result.exit_code == 0, f"{words}: {result.output}"
        return result.stdout.strip()

    def first(self, path: str, name: str, field: str) -> str:
        """The id of the first one in a list of the API."""
        listed = self.ask("GET", path)
        assert listed is not None, path
        return str(listed[name][0][field])

    def _sign_up(self) -> None:
        """The first administrator, by the set-up link."""
        link = (self.folder / "data" / "setup-link.txt").read_text().strip()
        body = {"token": link.partition("#token=")[2], "login": LOGIN, "password": PASSWORD}
        assert self.ask("POST", "/api/setup", body) is not None

    # Running -----------------------------------------------------------------------------------------------------

    def run(self, words: Sequence[str], env: Mapping[str, str] | None = None, stdin: str = "") -> Result:
        """`camserver WORDS` in this process, in the stage's folder."""
        settled = {"LC_ALL": "C.UTF-8", "COLUMNS": "200", **(env or {})}
        with self._here():
            return CliRunner().invoke(cli.main, [self.settled(word) for word in words], env=settled, input=stdin)

    def settled(self, word: str) -> str:
        """A word of a page as it is here: other folders, another analyzer."""
        outside = next((one for one in OUTSIDE if word.startswith((one, f"path={one}"))), None)
        if outside is not None:
            word = word.replace(outside, f"{self.folder}{outside}", 1)
        return word.replace(ANALYZER, self._analyzer_url)

    def parse(self, words: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
        """What is wrong with the words, before anything is done by them."""
        try:
            with self._here(), patch.dict(os.environ, env or {}):
                context = cli.main.make_context("camserver", [self.settled(word) for word in words])
                while isinstance(context.command, click.Group):
                    rest = [*context._protected_args, *context.args]
                    name, command, rest = context.command.resolve_command(context, rest)
                    assert command is not None
                    context = command.make_context(name, rest, parent=context)
        except click.exceptions.ClickException as error:
            return error.format_message()
        except click.exceptions.Exit as error:
            return None if error.exit_code == 0 else f"exit {error.exit_code}"
        return None

    @contextmanager
    def _here(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            yield
        finally:
            os.chdir(before)
