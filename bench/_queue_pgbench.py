"""The limit: pgbench sending the statements of our claim and completion, without a program around them.

The statements are recorded from a real batch, not written again. Their texts are ours; the ids among their arguments
become pgbench variables that walk through the queue as claims do, and everything else stays as it was.
"""

import asyncio
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import asyncpg

from bench._queue_scene import BATCH, CAMERAS, TERMS, finished
from camserver.store import Sql, jobs, outcomes
from camserver.store.jobs import ClaimedJob
from camserver.store.postgres import PostgresTx
from camserver.store.sql import Dialect
from camserver.store.tx import Row
from tests.store.scenery import NOW_MS, Scene

PGBENCH = "/usr/lib/postgresql/15/bin/pgbench"
_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)(\.\.\.)?")
_WORD = re.compile(r"[a-z0-9_.]*")
_SINGULAR = {f"{name}s": name for name in ("job_id", "camera_key", "frame_id", "event_id", "incident_id")}
_SINGULAR["delivery_uuids"] = "delivery_uuid"


# A statement and the rows of parameters it was sent with.
Recorded = list[tuple[str, tuple[Mapping[str, object], ...]]]


class _Recorder(PostgresTx):
    """Runs statements and remembers them."""

    def __init__(self, connection: object) -> None:
        super().__init__(connection)
        self.statements: Recorded = []

    def _note(self, sql: str | Sql, *rows: Mapping[str, object]) -> None:
        if rows:
            self.statements.append((sql if isinstance(sql, str) else sql.on(Dialect.POSTGRES), rows))

    async def one(self, sql: str | Sql, **params: object) -> Row | None:
        self._note(sql, params)
        return await super().one(sql, **params)

    async def all(self, sql: str | Sql, **params: object) -> Sequence[Row]:
        self._note(sql, params)
        return await super().all(sql, **params)

    async def run(self, sql: str | Sql, **params: object) -> int:
        self._note(sql, params)
        return await super().run(sql, **params)

    async def many(self, sql: str | Sql, rows: Sequence[Mapping[str, object]]) -> None:
        self._note(sql, *rows)
        await super().many(sql, rows)


async def jobs_per_second(url: str, scene: Scene, count: int, clients: int, folder: Path) -> float:
    """What pgbench reaches on a database prepared by `_queue_scene.new_scene(store, count)`."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_RENUMBER)
        first_job = await connection.fetchval("SELECT min(job_id) FROM inference_jobs WHERE status = 'queued'")
        claiming, applying, claimed = await _record(connection)
    finally:
        await connection.close()
    # The recorded batch is done; the walk begins behind it.
    first, constants = first_job + BATCH, _Constants()
    script = _script(claiming, applying, claimed, scene, first, constants)
    path = folder / "batch.pgbench"
    path.write_text(script)
    rounds = (count - 2 * BATCH) // BATCH // clients
    options = [
        *("--no-vacuum", "--protocol=prepared", f"--file={path}", f"--client={clients}", f"--jobs={min(2, clients)}"),
        *(f"--transactions={rounds}", "--define=round=0", f"--define=clients={clients}", *constants.options),
    ]
    run = partial(subprocess.run, [PGBENCH, url, *options], capture_output=True, text=True, check=False)
    done = await asyncio.to_thread(run)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"pgbench failed: {done.stderr[-2000:]}")
    return float(found.group(1)) * BATCH


async def _record(connection: asyncpg.Connection) -> tuple[Recorded, Recorded, tuple[ClaimedJob, ...]]:
    async with connection.transaction():
        claim = _Recorder(connection)
        claimed = await jobs.claim(claim, "pgbench", "token", BATCH, NOW_MS, TERMS)
    async with connection.transaction():
        apply = _Recorder(connection)
        await outcomes.apply(apply, tuple(finished(job) for job in claimed), NOW_MS)
        await apply.write_changes()
    return claim.statements, apply.statements, claimed


class _Constants:
    """Texts become variables of their own: within a script a colon in them would look like one."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, text: str) -> str:
        return ":" + self._names.setdefault(text, f"text_{len(self._names)}")

    @property
    def options(self) -> list[str]:
        return [f"--define={name}={text}" for text, name in self._names.items()]


def _script(
    claiming: Recorded,
    applying: Recorded,
    claimed: tuple[ClaimedJob, ...],
    scene: Scene,
    first_job: int,
    constants: _Constants,
) -> str:
    lines = [f"\\set base {first_job} + (:round * :clients + :client_id) * {BATCH}", "\\set round :round + 1"]
    variables: dict[tuple[str, int], str] = {}
    for index, job in enumerate(claimed):
        camera = job.frame.camera_key
        lines.append(f"\\set job_{index} :base + {index}")
        lines.append(f"\\set camera_{index} {scene.camera_keys[0]} + (:job_{index} - 1) % {CAMERAS}")
        for kind in ("job_id", "frame_id"):
            variables[kind, job.job_id] = f":job_{index}"
        for kind in ("camera_key", "event_id", "incident_id"):
            variables[kind, camera] = f":camera_{index}"
    for statements in (claiming, applying):
        lines.append("BEGIN;")
        for text, rows in statements:
            # Several rows are sent by our driver without waiting in between, and so by pgbench.
            sent = [_statement(text, row, variables, constants) for row in rows]
            lines += sent if len(sent) == 1 else ["\\startpipeline", *sent, "\\endpipeline"]
        lines.append("COMMIT;")
    return "\n".join(lines) + "\n"


def _statement(
    text: str, params: Mapping[str, object], variables: Mapping[tuple[str, int], str], constants: _Constants
) -> str:
    def value(name: str, given: object) -> str:
        singular = _SINGULAR.get(name, name)
        if singular == "delivery_uuid":
            return "gen_random_uuid()::text"
        if name == "object_ids":
            return next(
                (variables[kind, given] for kind in ("event_id", "frame_id") if (kind, given) in variables),  # type: ignore[index]
                str(given),
            )
        if isinstance(given, int) and (singular, given) in variables:
            return variables[singular, given]
        if isinstance(given, str):
            # A statement takes no more than 255 variables.
            return f"'{given}'" if _WORD.fullmatch(given) else constants.name(given)
        return "NULL" if given is None else repr(given)

    def place(match: re.Match[str]) -> str:
        name, given = match.group(1), params[match.group(1)]
        if not isinstance(given, list):
            return value(name, given)
        items = ", ".join(value(name, item) for item in given)
        return items if match.group(2) else f"ARRAY[{items}]"

    # One line each: a line break inside would be kept, but a script is easier to read this way.
    return " ".join(_PARAMETER.sub(place, text).split()) + ";"


# Ids that follow from each other: job = frame, event = incident = camera. Through negatives, to never collide.
_RENUMBER = """
UPDATE inference_jobs SET job_id = -frame_id;
UPDATE inference_jobs SET job_id = -job_id;
UPDATE event_tags t SET event_id = -t.camera_key;
UPDATE event_tags SET event_id = -event_id;
UPDATE events SET event_id = -camera_key, incident_id = -camera_key;
UPDATE events SET event_id = -event_id, incident_id = -incident_id;
UPDATE incidents SET incident_id = -camera_key;
UPDATE incidents SET incident_id = -incident_id;
UPDATE camera_state SET open_event_id = camera_key, incident_id = camera_key;
UPDATE frames SET event_id = camera_key WHERE event_id IS NOT NULL;
ANALYZE;
"""
