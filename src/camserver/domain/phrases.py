"""How primary events, severities, camera issues and their causes are called, in Japanese and English.

Tags have their labels in the vocabulary itself, but for those that the server gives and no analyzer may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrase:
    ja: str
    en: str


PRIMARY_EVENTS: Mapping[str, Phrase] = {
    "none": Phrase("検知なし", "Nothing detected"),
    "human": Phrase("人を検知", "Person detected"),
    "animal": Phrase("動物を検知", "Animal detected"),
    "vehicle": Phrase("車両を検知", "Vehicle detected"),
    "hazard": Phrase("危険を検知", "Hazard detected"),
    "camera_issue": Phrase("カメラの異常", "Camera issue"),
    "object_missing": Phrase("物がなくなった可能性", "Object may be missing"),
    "unknown": Phrase("不明な動き", "Unknown activity"),
}


def primary_event_phrase(primary_event: str) -> Phrase:
    """A vocabulary may name events that are not ours; those are shown by their own name."""
    return PRIMARY_EVENTS.get(primary_event) or Phrase(primary_event, primary_event)


# By severity, as the pages call them.
SEVERITIES: Sequence[Phrase] = (
    Phrase("記録", "Record"),
    Phrase("情報", "Notice"),
    Phrase("注意", "Warning"),
    Phrase("警報", "Alarm"),
)


def severity_phrase(severity: int) -> Phrase:
    return SEVERITIES[min(max(severity, 0), len(SEVERITIES) - 1)]


# The server's own tags, which no vocabulary names.
OWN_TAGS: Mapping[str, Phrase] = {
    "camera.frozen": Phrase("映像の停止", "Picture frozen"),
    "camera.unattended": Phrase("ワーカー不在", "No worker looks at it"),
}

# Kinds of domain.health.Issue.
CAMERA_ISSUES: Mapping[str, Phrase] = {
    "offline": Phrase("カメラの通信断", "Camera offline"),
    "unattended": Phrase("見ているワーカーがありません", "No worker looks at it"),
    "covered": Phrase("カメラが覆われているか、真っ暗です", "Camera covered, or completely dark"),
    "moved": Phrase("カメラの向きが変わりました", "Camera moved"),
    "frozen": Phrase("映像が止まっています", "Picture frozen"),
}

# The same when they are over.
CAMERA_ISSUES_OVER: Mapping[str, Phrase] = {
    "offline": Phrase("カメラとの通信が復旧しました", "Back to normal: Camera offline"),
    "unattended": Phrase("ワーカーが再び見ています", "A worker looks at it again"),
    "covered": Phrase("カメラの視界が回復しました", "Back to normal: Camera covered, or completely dark"),
    "moved": Phrase("カメラの向きの異常は解消しました", "Back to normal: Camera moved"),
    "frozen": Phrase("映像の停止は解消しました", "Back to normal: Picture frozen"),
}

# Nothing is wrong with the camera: its device bears no more streams, and somebody watches another one of it.
WATCHED_LIVE = "watched_live"

# Why looks fail (domain.leases.Fault and the codes of looks), and why nothing is known of a camera.
CAMERA_CAUSES: Mapping[str, Phrase] = {
    "unauthorized": Phrase("ユーザー名またはパスワードが違います", "It refuses user name or password"),
    "no_route": Phrase("ネットワークから到達できません", "The network does not reach it"),
    "refused": Phrase("接続が拒否されています", "It refuses the connection"),
    "not_found": Phrase("指定のアドレスに映像がありません", "There is nothing at its address"),
    "no_video": Phrase("接続できますが、映像が届きません", "It can be reached but sends no video"),
    "stalled": Phrase("接続したまま、映像が途絶えました", "It is connected but stopped sending"),
    "no_looks": Phrase(
        "担当のワーカーから画像が届きません", "Its worker is there but sends no pictures, not even failed ones"
    ),
    "timeout": Phrase("時間内に応答がありません", "It does not answer in time"),
    "crash": Phrase("ワーカー側で問題が起きました", "The worker had a problem"),
    "no_ack": Phrase("ワーカーが応答しません", "The worker does not answer"),
    "unattended": Phrase(
        "見ているワーカーがありません（カメラの故障ではありません）", "No worker looks at it (the camera may be well)"
    ),
    WATCHED_LIVE: Phrase(
        "同じ機器の別のカメラがライブ視聴中のため、撮影を見合わせています",
        "Another camera of its device is being watched live; its looks wait",
    ),
    "off": Phrase("オフになっています", "It is switched off"),
    "error": Phrase("エラーが発生しました", "There was an error"),
}


def camera_issue_phrase(kind: str) -> Phrase:
    return CAMERA_ISSUES.get(kind) or Phrase(kind, kind)


def camera_issue_over_phrase(kind: str) -> Phrase:
    return CAMERA_ISSUES_OVER.get(kind) or Phrase(f"{kind} は解消しました", f"Back to normal: {kind}")


_PAUSES: Mapping[str, Phrase] = {
    WATCHED_LIVE: Phrase(
        "同じ機器の別のカメラがライブ視聴中だったため、撮影を見合わせました",
        "Another camera of its device was watched live; its looks waited",
    ),
}


def pause_phrase(cause: str) -> Phrase:
    """Why a camera was not looked at for a time that is over, or not yet."""
    return _PAUSES.get(cause) or Phrase(cause, cause)


def camera_cause_phrase(cause: str) -> Phrase:
    """A cause that a newer worker names and this server does not know is shown by its own name."""
    return CAMERA_CAUSES.get(cause) or Phrase(cause, cause)
