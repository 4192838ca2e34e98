"""No rule, statement or dispatcher asks a wall clock (decision T1): time comes in as an argument or from a Clock."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "camserver"
FOLDERS = ("domain", "store", "services/dispatcher", "services/control", "services/web")
WALL = re.compile(
    r"\btime\.(time|time_ns|localtime|gmtime)\(|\b(datetime|date)\.(now|today|utcnow)\(|\bwall_time_ms\("
    # In a statement it would be the database's own, which no test could move.
    r"|\bNOW\(\)|\bCURRENT_TIMESTAMP\b|\bCURRENT_DATE\b|\bSYSDATE\(|\bclock_timestamp\(|strftime\('%s'"
)
EXCEPT = {
    "store/mariadb.py",  # here the store clock itself learns the database's time
    "store/postgres.py",
    "store/dumps.py",  # the name of a file that is kept aside, for people
    "store/migrate.py",  # a backup's file name, for people
    "store/tables/__init__.py",  # says so
}


def test_nothing_but_the_store_clock_tells_the_time() -> None:
    files = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*.py"))]
    assert len(files) > 100
    found = [
        f"{name}:{number}: {line.strip()}"
        for path in files
        if (name := path.relative_to(SOURCE).as_posix()) not in EXCEPT
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if WALL.search(line)
    ]
    assert found == []
