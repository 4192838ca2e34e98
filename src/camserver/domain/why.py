"""Why a camera runs or does not, in plain words, in Japanese and English.

From the camera's own rows (switched off, held, paused, waiting after a fault) and, when nobody holds it, from the
reason that the assignment gives for it. Each line has a code for machines; times are told from now on, in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from camserver.domain.assignment import decide
from camserver.domain.assignment_types import (
    AssignmentPolicy,
    CameraNeed,
    Kind,
    Quota,
    Reason,
    Snapshot,
    Why,
    WorkerOffer,
)
from camserver.domain.phrases import WATCHED_LIVE, Phrase

# Workers named one by one; the others are in the sums.
NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class CameraFacts:
    camera_id: str
    site: str
    is_enabled: bool
    do_not_process: bool
    has_stream: bool
    state: str  # of its session; '' before it has one
    reason: str
    holder_key: int | None
    holder_id: str | None
    generation: int
    lease_expires_at: int | None
    is_stopping: bool
    is_started: bool  # START was sent and is waited for
    is_acked: bool
    next_attempt_at: int | None
    failures: int
    auth_failures: int
    pinned_id: str | None
    needs_labels: tuple[tuple[str, str], ...]
    stream_fault: tuple[str, str] | None = None  # which of its two streams fails now, and why


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    worker_key: int
    worker_id: str
    is_present: bool
    is_draining: bool
    used: int
    slots: int


@dataclass(frozen=True, slots=True)
class Line:
    code: str
    text: Phrase


@dataclass(frozen=True, slots=True)
class Explanation:
    is_running: bool
    lines: tuple[Line, ...]  # the first one is the answer, the others say more


def explain(
    camera: CameraFacts,
    need: CameraNeed,
    workers: tuple[WorkerFacts, ...],
    offers: tuple[WorkerOffer, ...],
    quota: Quota | None,
    now_ms: int,
) -> Explanation:
    if not camera.is_enabled:
        return Explanation(False, (_line("disabled", camera),))
    if not camera.has_stream:
        return Explanation(False, (_line("no_stream", camera),))
    held = camera.holder_id is not None and (camera.lease_expires_at or 0) > now_ms and camera.state != "ORPHANED"
    if held:
        return _held(camera, workers, now_ms)
    lines = []
    if camera.holder_id is not None:
        ago = max(now_ms - (camera.lease_expires_at or now_ms), 0) // 1000
        lines.append(_line("lease_ran_out", camera, worker=camera.holder_id, ago=ago))
    snapshot = Snapshot(now_ms, offers, (need,), () if quota is None else (quota,))
    (decision,) = decide(snapshot, AssignmentPolicy()).decisions
    names = {one.worker_key: one.worker_id for one in workers}
    if decision.kind is Kind.TAKE:
        lines.insert(0, _line("about_to_start", camera, worker=names.get(decision.worker_key or 0, "?")))
    else:
        lines.insert(0, _waiting(camera, decision.reason, names, now_ms))
        lines += _rooms(workers) if decision.reason.why in _ABOUT_ROOM else []
    if camera.failures:
        lines.append(_fault(camera))
    elif camera.reason:
        lines.append(_line("last_reason", camera, reason=camera.reason))
    return Explanation(False, tuple(lines))


def _held(camera: CameraFacts, workers: tuple[WorkerFacts, ...], now_ms: int) -> Explanation:
    left = max((camera.lease_expires_at or 0) - now_ms, 0) // 1000
    facts = {"worker": camera.holder_id, "left": left, "generation": camera.generation}
    lease = _line("lease", camera, **facts)
    here = next((one for one in workers if one.worker_key == camera.holder_key), None)
    away = [] if here is None or here.is_present else [_line("holder_away", camera, **facts)]
    extra = [_line("not_processed", camera)] if camera.do_not_process else []
    if camera.pinned_id is not None:
        code = "pinned_here" if camera.pinned_id == camera.holder_id else "pinned_elsewhere"
        extra.append(_line(code, camera, pinned=camera.pinned_id))
    if camera.stream_fault is not None:
        stream, fault = camera.stream_fault
        code = "watched_live" if fault == WATCHED_LIVE else "stream_fault"
        extra.append(_line(code, camera, stream=stream, reason=fault))
    if camera.is_stopping:
        return Explanation(False, (_line("stopping", camera, reason=camera.reason, **facts), *away, lease))
    if camera.state == "ACTIVE":
        return Explanation(not away, (*away, _line("running", camera, **facts), lease, *extra))
    tries = []
    if camera.next_attempt_at is not None and camera.next_attempt_at > now_ms:
        tries.append(_line("next_attempt", camera, seconds=(camera.next_attempt_at - now_ms) // 1000))
    if camera.failures:
        code = "paused_fault" if camera.state == "PAUSED" else "failing"
        first = _line(code, camera, reason=camera.reason, failures=camera.failures, **facts)
        auth = [_line("auth", camera, count=camera.auth_failures)] if camera.auth_failures else []
        return Explanation(False, (first, *auth, *tries, *away, lease, *extra))
    if camera.state == "PAUSED":
        first = _line("paused", camera, reason=camera.reason or "-", **facts)
        return Explanation(False, (first, *tries, *away, lease, *extra))
    code = "starting" if camera.is_acked else "not_acked" if camera.is_started else "not_sent"
    return Explanation(False, (_line(code, camera, **facts), *tries, *away, lease, *extra))


def _fault(camera: CameraFacts) -> Line:
    if camera.auth_failures:
        return _line("auth", camera, count=camera.auth_failures)
    return _line("last_fault", camera, reason=camera.reason or "-", failures=camera.failures)


def _waiting(camera: CameraFacts, reason: Reason, names: Mapping[int, str], now_ms: int) -> Line:
    return _line(
        reason.why.value,
        camera,
        worker=camera.pinned_id or names.get(reason.worker_key or 0, "?"),
        seconds=max((reason.at_ms or now_ms) - now_ms, 0) // 1000,
        workers=reason.workers,
        used=reason.used,
        slots=reason.slots,
        labels=", ".join(f"{name}={value}" for name, value in camera.needs_labels),
    )


def _rooms(workers: tuple[WorkerFacts, ...]) -> list[Line]:
    """Who has how many slots."""
    lines = []
    for one in workers[:NAMED_MAX]:
        code = "room_away" if not one.is_present else "room_draining" if one.is_draining else "room"
        facts = {"worker": one.worker_id, "used": one.used, "slots": one.slots}
        lines.append(Line(code, _filled(WORDS[code], facts)))
    return lines


def _line(code: str, camera: CameraFacts, **facts: object) -> Line:
    return Line(code, _filled(WORDS[code], {"camera": camera.camera_id, "site": camera.site, **facts}))


def _filled(phrase: Phrase, facts: Mapping[str, object]) -> Phrase:
    return Phrase(phrase.ja.format(**facts), phrase.en.format(**facts))


_ABOUT_ROOM = frozenset({Why.ALL_FULL, Why.TOO_BIG, Why.ALL_AWAY, Why.ALL_DRAINING, Why.LABELS, Why.PIN_FULL})

WORDS: Mapping[str, Phrase] = {
    "disabled": Phrase("{camera} は無効になっています。", "{camera} is switched off."),
    "no_stream": Phrase("{camera} には映像のアドレスがありません。", "{camera} has no address to look at."),
    "running": Phrase("{camera} はワーカー {worker} で動作中です。", "{camera} is running at worker {worker}."),
    "lease": Phrase(
        "リースは {worker} が保持しています（世代 {generation}、残り {left} 秒、更新で延長）。",
        "The lease is held by {worker} (generation {generation}) for another {left} s, longer when renewed.",
    ),
    "holder_away": Phrase(
        "ワーカー {worker} から応答がありません。リースが切れる {left} 秒後に別のワーカーへ移ります。",
        "Worker {worker} is not heard of; when its lease ends in {left} s another one may take the camera.",
    ),
    "not_processed": Phrase(
        "処理しない設定のため、画像は送られません。", "It is set to do_not_process: no pictures."
    ),
    "stream_fault": Phrase(
        "{stream} ストリームに異常があります: {reason}（もう一方は動作中）。",
        "Its {stream} stream fails, the other one works: {reason}.",
    ),
    "watched_live": Phrase(
        "同じ機器の別のカメラがライブ視聴中のため、撮影を見合わせています（機器が同時に送れるストリーム数の上限）。",
        "Another camera of its device is being watched live, and the device bears no more streams: looks wait.",
    ),
    "pinned_here": Phrase("ワーカー {pinned} に固定されています。", "It is pinned to worker {pinned}."),
    "pinned_elsewhere": Phrase(
        "ワーカー {pinned} に固定されていますが、まだ移動できていません。",
        "It is pinned to worker {pinned}, but could not go there yet.",
    ),
    "stopping": Phrase(
        "ワーカー {worker} に停止を指示しました（{reason}）。停止後に次のワーカーで始まります。",
        "Worker {worker} was told to stop ({reason}); it starts elsewhere after that.",
    ),
    "starting": Phrase(
        "ワーカー {worker} が開始の指示を受け取り、映像を待っています。",
        "Worker {worker} has taken the order to start and waits for video.",
    ),
    "not_acked": Phrase(
        "ワーカー {worker} に開始を指示しましたが、まだ返事がありません。",
        "Worker {worker} was told to start and has not answered yet.",
    ),
    "not_sent": Phrase(
        "ワーカー {worker} に割り当て済みです。開始の指示はこれから送られます。",
        "It is assigned to worker {worker}; the order to start has not been sent yet.",
    ),
    "paused_fault": Phrase(
        "カメラの異常で一時停止中です: {reason}（連続 {failures} 回、ワーカー {worker}）。",
        "It is paused for a fault of the camera: {reason} ({failures} times in a row, at worker {worker}).",
    ),
    "failing": Phrase(
        "カメラに接続できていません: {reason}（連続 {failures} 回、ワーカー {worker}）。",
        "The camera can't be reached: {reason} ({failures} times in a row, at worker {worker}).",
    ),
    "paused": Phrase(
        "一時停止中です: {reason}（ワーカー {worker}）。", "It is paused: {reason} (at worker {worker})."
    ),
    "auth": Phrase(
        "カメラがパスワードを {count} 回拒否しました。パスワードを直すとすぐに再試行します。",
        "The camera refused the password {count} times; it is tried again at once when the password is changed.",
    ),
    "next_attempt": Phrase("次の試行は {seconds} 秒後です。", "The next attempt is in {seconds} s."),
    "last_fault": Phrase(
        "最後の異常: {reason}（連続 {failures} 回）。", "Last fault: {reason} ({failures} in a row)."
    ),
    "last_reason": Phrase("最後の記録: {reason}", "Last noted: {reason}"),
    "lease_ran_out": Phrase(
        "{worker} のリースは {ago} 秒前に切れました。", "The lease of {worker} ran out {ago} s ago."
    ),
    "about_to_start": Phrase(
        "まもなくワーカー {worker} で始まります。", "It is about to be started at worker {worker}."
    ),
    "room": Phrase("{worker}: {slots} 台中 {used} 台を使用", "{worker}: {used} of {slots} slots in use"),
    "room_away": Phrase(
        "{worker}: 応答なし（{slots} 台中 {used} 台）", "{worker}: away ({used} of {slots} slots in use)"
    ),
    "room_draining": Phrase(
        "{worker}: 退避中（{slots} 台中 {used} 台）", "{worker}: being emptied ({used} of {slots} slots in use)"
    ),
    # Reasons of the assignment
    Why.BACKING_OFF.value: Phrase(
        "失敗のあとの待ち時間です。次の試行は {seconds} 秒後です。",
        "It waits after a failure; the next attempt is in {seconds} s.",
    ),
    Why.QUOTA.value: Phrase(
        "同時に動かせるカメラの上限に達しています（{slots} 台中 {used} 台）。",
        "The quota is reached: {used} cameras run, at most {slots} may.",
    ),
    Why.NO_WORKER.value: Phrase(
        "サイト {site} にはワーカーがありません。", "Site {site} has no worker; register one there."
    ),
    Why.ALL_AWAY.value: Phrase(
        "サイト {site} のワーカー {workers} 台はどれも応答がありません。",
        "None of the {workers} workers of site {site} is connected.",
    ),
    Why.ALL_DRAINING.value: Phrase(
        "サイト {site} のワーカーはすべて退避中です。", "Every worker of site {site} is being emptied (drained)."
    ),
    Why.LABELS.value: Phrase(
        "必要なラベル（{labels}）を持つワーカーがサイト {site} にありません。",
        "No worker of site {site} has the labels it needs ({labels}).",
    ),
    Why.ALL_FULL.value: Phrase(
        "サイト {site} のワーカーはすべて満杯です（{slots} 台中 {used} 台）。",
        "All workers of site {site} are full ({used} of {slots} slots).",
    ),
    Why.TOO_BIG.value: Phrase(
        "空きのあるワーカーでは、CPU・GPU・メモリが足りません。",
        "Workers with a free slot lack the CPU, GPU or memory for it.",
    ),
    Why.PIN_AWAY.value: Phrase(
        "固定先のワーカー {worker} が応答しません。", "It is pinned to worker {worker}, which is away."
    ),
    Why.PIN_ELSEWHERE.value: Phrase(
        "固定先のワーカー {worker} は別のサイトにあります。",
        "It is pinned to worker {worker}, which stands in another site.",
    ),
    Why.PIN_DRAINING.value: Phrase(
        "固定先のワーカー {worker} は退避中です。", "It is pinned to worker {worker}, which is being emptied."
    ),
    Why.PIN_LABELS.value: Phrase(
        "固定先のワーカー {worker} には必要なラベル（{labels}）がありません。",
        "It is pinned to worker {worker}, which lacks the labels it needs ({labels}).",
    ),
    Why.PIN_FULL.value: Phrase(
        "固定先のワーカー {worker} は満杯です（{slots} 台中 {used} 台）。",
        "It is pinned to worker {worker}, which is full ({used} of {slots} slots).",
    ),
}
