"""What viewers are told when there is no picture, in both languages."""

from camserver.wire.live import LiveState, ViewerStatus

_WORDS = {
    "unauthorized": ("The camera refused user or password.", "カメラがユーザー名またはパスワードを拒否しました。"),
    "not_found": ("The camera has no such stream.", "カメラにこのストリームがありません。"),
    "refused": ("The camera refuses the connection.", "カメラが接続を拒否しています。"),
    "no_route": ("There is no way to the camera in the network.", "ネットワーク上でカメラに到達できません。"),
    "no_video": ("The camera sends no video.", "カメラから映像が届きません。"),
    "crash": ("Reading the camera failed.", "カメラの読み取りに失敗しました。"),
    "no_worker": ("No worker looks after this camera now.", "このカメラを担当するワーカーがいません。"),
    "moved": ("The camera moves to another worker.", "カメラを別のワーカーへ移しています。"),
    "shed": (
        "The camera's site is short of bandwidth; its looks go first.",
        "サイトの回線が混雑しているため、巡回を優先しています。",
    ),
    "device_full": (
        "The device bears no more streams at once.",
        "機器が同時に送れるストリーム数の上限に達しています。",
    ),
    "masked": (
        "The camera has a privacy mask; its video is being transcoded.",
        "プライバシーマスクを適用するため、映像を変換しています。",
    ),
    "codec": (
        "Browsers can't play the camera's video; it is being transcoded.",
        "この映像形式はブラウザーで再生できないため、変換しています。",
    ),
    "no_room_to_transcode": (
        "The video must be transcoded, and there is no room for that now.",
        "映像の変換が必要ですが、現在その余裕がありません。",
    ),
    "transcode_full": (
        "The camera's worker transcodes as many cameras as it can.",
        "ワーカーで同時に変換できるカメラ数の上限に達しています。",
    ),
    "not_processed": ("The camera is not to be processed.", "このカメラは処理対象外です。"),
    "streamer_lost_store": ("The server can't be asked at the moment.", "サーバーに接続できません。"),
}
_STATES = {
    "connecting": ("Connecting to the camera …", "カメラに接続しています…"),
    "live": ("Live", "ライブ"),
    "stalled": ("The camera's video stands still.", "映像が止まっています。"),
    "refused": ("The camera gives no picture.", "カメラから映像を取得できません。"),
    "waiting": ("Waiting for the camera.", "カメラの空きを待っています。"),
    "moving": ("The camera moves to another worker.", "カメラを別のワーカーへ移しています。"),
    "ended": ("The live view has ended.", "ライブ表示が終了しました。"),
}


def status(state: LiveState, reason: str, message: str, since: int) -> ViewerStatus:
    english, japanese = _WORDS.get(reason) or _STATES[state]
    return ViewerStatus(
        state=state, reason=reason, message=message[:255], label_en=english, label_ja=japanese, since=since
    )
