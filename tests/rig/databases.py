"""Private PostgreSQL and MariaDB servers: own data folder, own port, own password, gone at the end.

    with postgres_server() as server:
        server.create("orders")
        ... server.url("orders") ...

`durable=False` leaves out fsync and lives in memory where there is room: what was committed survives kill -9 of any
process, not a power cut, and tests are quick. `durable=True` is how the databases are run in earnest, on the disk;
use it in crash tests and benchmarks.
Nothing here knows the product's tables; see templates.py for migrated databases.
"""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from tests.rig.guarded import GuardedServer
from tests.rig.memory import quick_folder
from tests.rig.polling import poll
from tests.rig.ports import LOOPBACK, free_port

USER = "camserver"
CONNECTIONS_MAX = 200
START_ATTEMPTS_MAX = 5
# Of a client or of making a data folder; reaching it means it hangs.
PROGRAM_TIMEOUT_SEC = 180


class MissingServer(Exception):
    """A database server is not installed; the message names the package."""


class DatabaseServer(ABC):
    """One running server. Databases are made, dropped and asked through its own command-line client."""

    kind: ClassVar[str]
    system_user: ClassVar[str]  # who runs it when we are root, which both servers refuse

    def __init__(self, folder: Path, durable: bool) -> None:
        self.folder = folder
        self.durable = durable
        self.data = folder / "data"
        self.password = secrets.token_hex(12)
        self.port = 0
        self._process: GuardedServer | None = None

    @abstractmethod
    def url(self, database: str) -> str: ...

    @abstractmethod
    def admin(self, sql: str, database: str | None = None) -> str:
        """Runs statements over the server's socket and returns what they print, columns parted by tabs."""

    @abstractmethod
    def create(self, database: str) -> None: ...

    @abstractmethod
    def drop(self, database: str) -> None: ...

    @abstractmethod
    def _init(self) -> None:
        """Makes the data folder."""

    @abstractmethod
    def _argv(self) -> list[str]: ...

    @abstractmethod
    def _stop_signal(self) -> signal.Signals: ...

    @property
    def process(self) -> GuardedServer:
        if self._process is None:
            raise RuntimeError(f"{self.kind} has not been started")
        return self._process

    def prepare(self) -> None:
        """Makes the data folder and starts the server on a free port."""
        self.folder.chmod(0o711)  # the server's user passes through; its data folder is its own
        self.data.mkdir(mode=0o700)
        if self._run_as() is not None:
            shutil.chown(self.data, self.system_user, self.system_user)
        self._init()
        for attempt in range(START_ATTEMPTS_MAX):
            self.port = free_port()
            try:
                self.start()
                return
            except RuntimeError:
                # The port may have been taken since; anything else fails every time.
                if attempt == START_ATTEMPTS_MAX - 1:
                    raise

    def start(self) -> None:
        """Starts it (again) on its port and waits until it answers."""
        self._process = GuardedServer(
            self._argv(), folder=self.folder, user=self._run_as(), stop_signal=self._stop_signal()
        )
        self._process.start()
        poll(self._answers, f"{self.kind} on port {self.port}")

    def stop(self) -> None:
        """Ends it for good and quickly: its data is about to be thrown away."""
        if self._process is not None:
            self._process.stop()

    def crash(self) -> None:
        """kill -9; `start` brings it back with what it had made durable."""
        self.process.crash()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """As a machine that hangs: it takes what is sent and answers nothing."""
        self.process.freeze()
        try:
            yield
        finally:
            self.process.thaw()

    def _answers(self) -> bool:
        if not self.process.running:
            raise RuntimeError(f"{self.kind} ended while starting:\n{self.process.log_tail()}")
        try:
            self.admin("SELECT 1")
        except RuntimeError:
            return False
        return True

    def _run_as(self) -> str | None:
        return self.system_user if os.geteuid() == 0 else None

    def _own_file(self, path: Path, text: str) -> Path:
        """Writes a file that only the server's user reads."""
        path.touch(mode=0o600)
        path.write_text(text)
        if (user := self._run_as()) is not None:
            shutil.chown(path, user, user)
        return path

    def _as_user(self, argv: list[str], env: dict[str, str] | None = None, text: str | None = None) -> str:
        user = self._run_as()
        done = subprocess.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", **(env or {})},
            cwd=self.data,
            check=False,
            timeout=PROGRAM_TIMEOUT_SEC,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]} failed with exit code {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout


class PostgresServer(DatabaseServer):
    kind = "postgres"
    system_user = "postgres"

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    def admin(self, sql: str, database: str | None = None) -> str:
        psql = [str(_postgres_bin() / "psql"), "-h", str(self.data), "-p", str(self.port), "-U", USER]
        options = ["--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAt", "-F", "\t"]
        # From stdin and not by -c, whose transaction around many statements CREATE DATABASE refuses.
        return self._as_user([*psql, *options, database or "postgres"], {"PGPASSWORD": self.password}, sql)

    def create(self, database: str, template: str = "template0") -> None:
        self.admin(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')

    def drop(self, database: str) -> None:
        self.admin(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def _init(self) -> None:
        password_file = self._own_file(self.folder / "password", self.password + "\n")
        options = ["--username", USER, f"--pwfile={password_file}", "--auth=scram-sha-256"]
        shape = ["--encoding=UTF8", "--locale=C", "--no-sync"]
        self._as_user([str(_postgres_bin() / "initdb"), "-D", str(self.data), *options, *shape])
        password_file.unlink()

    def _argv(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": str(self.data),
            "max_connections": str(CONNECTIONS_MAX),
            "shared_buffers": "128MB",
            "logging_collector": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(_postgres_bin() / "postgres"), "-D", str(self.data), *options]

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGQUIT  # "immediate": the postmaster takes its children along, and nothing is flushed


class MariadbServer(DatabaseServer):
    kind = "mariadb"
    system_user = "mysql"

    def url(self, database: str) -> str:
        return f"mysql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    def admin(self, sql: str, database: str | None = None) -> str:
        options = [
            "--no-defaults",
            f"--socket={self._socket}",
            f"--user={USER}",
            "--batch",
            "--skip-column-names",
        ]
        charset = ["--default-character-set=utf8mb4", "--raw"]
        argv = [_mariadb_program("mariadb"), *options, *charset, *([database] if database else [])]
        return self._as_user(argv, {"MYSQL_PWD": self.password}, sql)

    def create(self, database: str) -> None:
        self.admin(f"CREATE DATABASE `{database}`")

    def drop(self, database: str) -> None:
        self.admin(f"DROP DATABASE IF EXISTS `{database}`")

    def dump(self, database: str) -> str:
        """Statements that make the tables and rows of `database` again."""
        options = [
            "--no-defaults",
            f"--socket={self._socket}",
            f"--user={USER}",
            "--skip-comments",
            "--no-tablespaces",
        ]
        plain = [
            "--skip-add-drop-table",
            "--skip-add-locks",
            "--skip-disable-keys",
            "--default-character-set=utf8mb4",
        ]
        argv = [_mariadb_program("mariadb-dump"), *options, *plain, database]
        return self._as_user(argv, {"MYSQL_PWD": self.password})

    @property
    def _socket(self) -> Path:
        return self.data / "s"

    def _init(self) -> None:
        install = [_mariadb_program("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}"]
        speed = ["--innodb-flush-method=nosync", "--innodb-log-file-size=16M", f"--tmpdir={self.data}"]
        self._as_user([*install, "--auth-root-authentication-method=normal", "--skip-test-db", *speed])
        # The server reads one statement a line. Root keeps no empty password; our user may do everything.
        self._own_file(
            self.data / "accounts.sql",
            f"ALTER USER root@localhost IDENTIFIED BY '{self.password}';\n"
            f"CREATE USER IF NOT EXISTS {USER}@localhost IDENTIFIED BY '{self.password}';\n"
            f"CREATE USER IF NOT EXISTS {USER}@'{LOOPBACK}' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {USER}@localhost;\n"
            f"GRANT ALL ON *.* TO {USER}@'{LOOPBACK}';\n",
        )

    def _argv(self) -> list[str]:
        settings = {
            "datadir": str(self.data),
            # Servers that start clear the shared folder of everybody's temporary tables.
            "tmpdir": str(self.data),
            "socket": str(self._socket),
            "pid-file": str(self.data / "pid"),
            "bind-address": LOOPBACK,
            "port": str(self.port),
            "init-file": str(self.data / "accounts.sql"),
            "max-connections": str(CONNECTIONS_MAX),
            "innodb-log-file-size": "16M",
            "innodb-buffer-pool-size": "128M",
            # Debian's defaults, so that tests meet the case-insensitive comparison that users have.
            "character-set-server": "utf8mb4",
            "collation-server": "utf8mb4_general_ci",
        }
        if self.durable:
            settings["innodb-log-file-size"] = "96M"  # MariaDB's default; a smaller one makes benchmarks slow
        else:
            settings["innodb-flush-method"] = "nosync"
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [
            _mariadb_program("mariadbd"),
            "--no-defaults",
            "--skip-name-resolve",
            "--skip-log-bin",
            *options,
        ]

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGKILL  # an orderly end takes a second or more, for data nobody reads again


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A private PostgreSQL; `MissingServer` when it is not installed."""
    _postgres_bin()
    with _folder("pg", durable) as folder:
        server = PostgresServer(folder, durable)
        try:
            server.prepare()
            yield server
        finally:
            server.stop()


@contextmanager
def mariadb_server(*, durable: bool = False) -> Iterator[MariadbServer]:
    """A private MariaDB; `MissingServer` when it is not installed."""
    for name in ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump"):
        _mariadb_program(name)
    with _folder("my", durable) as folder:
        server = MariadbServer(folder, durable)
        try:
            server.prepare()
            yield server
        finally:
            server.stop()


@contextmanager
def _folder(kind: str, durable: bool) -> Iterator[Path]:
    # Not in a test's own folder and short: the path of a Unix socket holds at most 107 bytes.
    above = Path("/tmp") if durable else quick_folder()
    folder = Path(tempfile.mkdtemp(prefix=f"cs-{kind}-", dir=above))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _postgres_bin() -> Path:
    """The newest installed PostgreSQL."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not found:
        raise MissingServer("PostgreSQL is not installed; on Debian: apt-get install postgresql")
    return max(found, key=lambda folder: int(folder.parent.name))


def _mariadb_program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/bin")
    if found is None:
        raise MissingServer(f"MariaDB's {name} is not installed; on Debian: apt-get install mariadb-server")
    return found
