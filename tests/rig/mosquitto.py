"""A private Mosquitto broker: own folder, own port, gone at the end.

with mosquitto(tmp_path) as broker:
    ... broker.port ...
    broker.crash()
    broker.start()
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.certificates import Certificate
from tests.rig.guarded import GuardedServer
from tests.rig.polling import poll
from tests.rig.ports import LOOPBACK, free_port

PROGRAM = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Mosquitto:
    """What is retained survives a stop, not a crash."""

    def __init__(self, folder: Path, certificate: Certificate | None, login: tuple[str, str] | None) -> None:
        assert PROGRAM is not None
        self.folder = folder
        self.port = free_port()
        lines = [
            f"listener {self.port} {LOOPBACK}",
            f"allow_anonymous {'false' if login else 'true'}",
            "persistence true",
            f"persistence_location {folder}/",
            "log_dest stderr",
            "log_type all",
        ]
        if os.geteuid() == 0:
            # By itself it would become a user who can't read this folder.
            lines.append("user root")
        if certificate is not None:
            lines += [f"certfile {certificate.path}", f"keyfile {certificate.path}"]
        if login is not None:
            passwords = folder / "passwords"
            tool = str(Path(PROGRAM).parent.parent / "bin" / "mosquitto_passwd")
            subprocess.run([tool, "-b", "-c", str(passwords), *login], check=True, capture_output=True)
            lines.append(f"password_file {passwords}")
        config = folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        self._server = GuardedServer(
            [PROGRAM, "-c", str(config)], folder=folder, user=None, stop_signal=signal.SIGTERM
        )

    def start(self) -> None:
        self._server.start()
        poll(self._answers, f"Mosquitto on port {self.port}: {self._server.log_path}")

    def stop(self) -> None:
        self._server.stop()

    def crash(self) -> None:
        self._server.crash()

    @property
    def pid(self) -> int:
        return self._server.pid

    def log(self) -> str:
        return self._server.log_path.read_text()

    def _answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=1).close()
        except OSError:
            return False
        return True


@contextmanager
def mosquitto(
    folder: Path, certificate: Certificate | None = None, login: tuple[str, str] | None = None
) -> Iterator[Mosquitto]:
    own = folder / "mosquitto"
    own.mkdir()
    broker = Mosquitto(own, certificate, login)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
