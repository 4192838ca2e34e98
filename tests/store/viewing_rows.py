"""Rows that tests of viewings start from: a tenant with cameras, people who are signed in, and a streamer."""

from dataclasses import dataclass

from camserver.domain.admission import AdmissionPolicy, Kind, Load, Quality
from camserver.domain.people import Principal, Role
from camserver.store import Store, Tx, admissions, streamers
from camserver.store.admissions import Admitted, NotAdmitted, Request, Wish
from camserver.store.streamers import StreamerReport
from tests.store.stage import NOW_MS, build

POLICY = AdmissionPolicy()
CALM = Load(10.0, 20.0, 0.0)
PLAYS = frozenset({"h264"})


@dataclass(frozen=True, slots=True)
class House:
    tenant_id: int
    site_id: int
    cameras: tuple[int, ...]  # keys
    people: tuple[Principal, ...]  # each with a sign-in of their own


def report(streamer_id: str = "streamer-1", units: int = 50, load: Load | None = CALM) -> StreamerReport:
    return StreamerReport(streamer_id, "https://live.example", 8081, "ws://10.0.0.1:8081/v1/feed", units, load)


async def furnish(store: Store, people: int = 3, cameras: int = 3, units: int | None = 50) -> House:
    stage = await build(store, 0, cameras, "house")
    await store.write(_with_two_streams)
    made = await store.write(_sign_in, stage.tenant_id, people)
    if units is not None:
        await store.write(streamers.check_in, report(units=units), POLICY, NOW_MS)
    return House(stage.tenant_id, stage.site_id, tuple(camera.key for camera in stage.cameras), made)


async def _with_two_streams(tx: Tx) -> None:
    await tx.run("UPDATE camera_streams SET source_type = 'rtsp', url = 'rtsp://10.0.0.1/main'")
    await tx.run(
        "INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url) "
        "SELECT tenant_id, camera_key, 'sub', 'rtsp', 'rtsp://10.0.0.1/sub' FROM cameras"
    )


async def _sign_in(tx: Tx, tenant_id: int, people: int) -> tuple[Principal, ...]:
    return tuple([await sign_in(tx, tenant_id, f"person-{number}") for number in range(people)])


async def sign_in(tx: Tx, tenant_id: int, login: str) -> Principal:
    user_id = await tx.insert(
        "INSERT INTO users (tenant_id, user_uuid, login, role, language, created_at) "
        "VALUES (:tenant_id, :login, :login, 'viewer', 'en', :now_ms) RETURNING user_id",
        tenant_id=tenant_id,
        login=login,
        now_ms=NOW_MS,
    )
    session_id = await tx.insert(
        "INSERT INTO sessions (tenant_id, user_id, token_hash, csrf_token, created_at, expires_at, last_seen_at) "
        "VALUES (:tenant_id, :user_id, :token_hash, 'x', :now_ms, :ends, :now_ms) RETURNING session_id",
        tenant_id=tenant_id,
        user_id=user_id,
        token_hash=f"hash-{login}",
        now_ms=NOW_MS,
        ends=NOW_MS + 30 * 86_400_000,
    )
    return Principal(tenant_id, user_id, Role.VIEWER, session_id=session_id)


async def ask(
    store: Store,
    principal: Principal,
    camera: int = 0,
    quality: Quality = Quality.SUB,
    kind: Kind = Kind.MODAL,
    now_ms: int = NOW_MS,
    policy: AdmissionPolicy = POLICY,
    tried: frozenset[str] = frozenset(),
) -> Admitted | NotAdmitted:
    wish = Wish(f"cam_{camera}", quality, kind, PLAYS)
    request = Request(principal, wish, "192.0.2.1", now_ms, tried)
    [answer] = await store.write(admissions.admit_all, (request,), policy)
    return answer


async def viewing_rows(tx: Tx) -> list[tuple[str, str, int]]:
    """(user, kind, units with its transcode) of every row."""
    rows = await tx.all("SELECT user_id, kind, units, transcode_units FROM modal_leases ORDER BY user_id, kind")
    return [(row["user_id"], row["kind"], row["units"] + row["transcode_units"]) for row in rows]
