"""What `camserver camera` says, in Japanese and English; the terminal's language decides."""

from collections.abc import Mapping

from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS: Mapping[str, Phrase] = {
    # List
    "added": Phrase("{camera_id} を追加しました。", "Added {camera_id}."),
    "removed": Phrase("{camera_id} を削除しました。", "Removed {camera_id}."),
    "remove": Phrase("{camera_id} を削除しますか", "Remove {camera_id}?"),
    "no_cameras": Phrase(
        "カメラはまだありません。追加するには: camserver camera add",
        "No cameras yet; add one with: camserver camera add",
    ),
    "off": Phrase("無効", "OFF"),
    # Change
    "changed": Phrase("{camera_id} を変更しました。", "Changed {camera_id}."),
    "nothing_to_change": Phrase(
        "変更する項目がありません。camserver camera change --help を見てください。",
        "Nothing to change was given; see: camserver camera change --help",
    ),
    "set_and_gone": Phrase(
        "{option} と、その値を設定するオプションは同時に使えません。",
        "{option} takes away what another option sets; give one of them.",
    ),
    "half_login": Phrase(
        "--user と --password-stdin は一緒に指定してください。保存済みの片方は読み出せません。",
        "Give --user and --password-stdin together: what is stored of a login is never read out again.",
    ),
    # Show
    "picture_saved": Phrase(
        "{file} に保存しました（{age} 前の画像）。", "Saved as {file}; the picture is {age} old."
    ),
    "no_hints": Phrase(
        "{camera_id} について解析に伝えることはありません。", "Nothing is said to the analyzer of {camera_id}."
    ),
    "unknown_hint": Phrase(
        "注意: 「{name}」という名前のものはありません（別の解析器なら知っているかもしれません）。",
        "note: nothing here is called {name!r}; check the spelling (another analyzer may know it).",
    ),
    "bad_corners": Phrase(
        "{option} {text}: 角の座標を X,Y の形で空白区切りにし、全体を引用符で囲んでください（値は 0 から 1）。"
        "例: {option} '0.1,0.2 0.5,0.2 0.5,0.6'",
        "{option} {text}: write the corners as X,Y with blanks between them and quotes around all, from 0 to 1, "
        "such as {option} '0.1,0.2 0.5,0.2 0.5,0.6'",
    ),
    "bad_zone": Phrase(
        "--zone {text}: 名前=角の座標 の形で書いてください。例: --zone 'door=0.1,0.2 0.5,0.2 0.5,0.6'",
        "--zone {text}: write it as NAME=corners, such as --zone 'door=0.1,0.2 0.5,0.2 0.5,0.6'",
    ),
    "bad_shelf_file": Phrase(
        "{file}: 角の座標の一覧ではありません。[[0.1, 0.2], [0.5, 0.2], [0.5, 0.6]] のように書いてください。",
        "{file}: this is no list of corners; write it like [[0.1, 0.2], [0.5, 0.2], [0.5, 0.6]]",
    ),
    "one_shelf": Phrase(
        "--shelf と --shelf-file は同時に使えません。どちらか一方にしてください。",
        "--shelf and --shelf-file say the same thing; give one of them.",
    ),
    # Probe
    "the_camera": Phrase("カメラ", "The camera"),
    "fps": Phrase("{value} fps", "{value} fps"),
    "gop": Phrase("キーフレーム間隔 {value} 秒", "a keyframe every {value} s"),
    "kbit": Phrase("{value} kbit/s", "{value} kbit/s"),
    "sound": Phrase("音声あり", "with sound"),
    "transport": Phrase("{value} で受信", "over {value}"),
    "step": Phrase("{step} {value} ms", "{step} {value} ms"),
    "in_all": Phrase("計 {value} ms", "{value} ms in all"),
    "picture": Phrase("画像: {file}", "Picture: {file}"),
    "other_device": Phrase(
        "このアドレスの機器は以前と異なります。カメラを交換した場合は --renew を付けてプローブしてください。",
        "Another device than before is at this address. If the camera was replaced, probe it with --renew.",
    ),
    "seen_at": Phrase(
        "現在は {address} で応答しています。変更するには: camserver camera rediscover {camera_id} --apply",
        "It answers at {address} now; move it with: camserver camera rediscover {camera_id} --apply",
    ),
    # Discovery
    "no_devices": Phrase(
        "応答したONVIF機器はありません。カメラの設定でONVIFが有効か確かめてください。",
        "No ONVIF device answered; is ONVIF switched on in the cameras?",
    ),
    "no_sighting": Phrase(
        "このカメラのONVIF識別子で応答する機器はありません。", "No device answers with this camera's ONVIF reference."
    ),
    "device": Phrase(
        "{manufacturer} {model}、ファームウェア {firmware}、シリアル番号 {serial}",
        "{manufacturer} {model}, firmware {firmware}, serial {serial}",
    ),
    "add_with": Phrase("追加するには: {command}", "Add it with: {command}"),
    "moved": Phrase(
        "{camera_id} は {address} で応答します。アドレスを変更しました。",
        "{camera_id} answers at {address}; its address is changed to that.",
    ),
    "not_moved": Phrase(
        "{camera_id} は {address} で応答します。アドレスはそのままです。変更するには --apply を付けてください。",
        "{camera_id} answers at {address}; its address stays; change it with --apply.",
    ),
    "in_place": Phrase(
        "{camera_id} は今のアドレス {address} で応答します。",
        "{camera_id} answers at {address}; that is its address already.",
    ),
    # Import
    "import_add": Phrase("追加予定", "would add"),
    "import_added": Phrase("追加", "added"),
    "import_same": Phrase("登録済み", "is there"),
    "import_differs": Phrase("相違あり（変更なし）", "differs"),
    "import_failed": Phrase("失敗", "failed"),
    "note": Phrase("注意", "note"),
    "import_would": Phrase("{added} 台を追加予定、その他 {others} 台。", "{added} would be added, {others} others."),
    "import_done": Phrase("{added} 台を追加、その他 {others} 台。", "{added} added, {others} others."),
    "import_incomplete": Phrase(
        "{file}: 取り込めないものがあります。修正してもう一度実行してください。",
        "{file}: not everything could be taken over; correct it and run the import again",
    ),
}
STEPS: Mapping[str, Phrase] = {
    "resolve": Phrase("名前解決", "resolve"),
    "connect": Phrase("接続", "connect"),
    "tls": Phrase("TLS", "tls"),
    "describe": Phrase("情報取得", "describe"),
    "open": Phrase("受信開始", "open"),
    "keyframe": Phrase("キーフレーム", "keyframe"),
    "picture": Phrase("画像取得", "picture"),
    "decode": Phrase("デコード", "decode"),
}
_HEADS: Mapping[str, Phrase] = {
    "list": Phrase(
        "ID|名前|状態|健全性|最終画像|コーデック|サイズ|FPS|プローブ|間隔|プリセット",
        "ID|NAME|STATE|HEALTH|LAST LOOK|CODEC|SIZE|FPS|PROBED|EVERY|PRESET",
    ),
    "presets": Phrase(
        "プリセット|場所|いつもある物|昼はいつもある物|ないはずの物", "PRESET|PLACE|EXPECTED|BY DAY|EXCLUDED"
    ),
    "devices": Phrase("アドレス|名前|機種|カメラ|識別子", "ADDRESS|NAME|MODEL|CAMERA|REFERENCE"),
    "profiles": Phrase("プロファイル|コーデック|サイズ|FPS|用途|アドレス", "PROFILE|CODEC|SIZE|FPS|USE|ADDRESS"),
}

_LABELS: Mapping[str, Phrase] = {
    "id": Phrase("ID", "id"),
    "name": Phrase("名前", "name"),
    "site": Phrase("サイト", "site"),
    "source": Phrase("アドレス", "address"),
    "sub": Phrase("副ストリーム", "sub stream"),
    "with_login": Phrase("ログインあり", "with a login"),
    "state": Phrase("状態", "state"),
    "holder": Phrase("ワーカー", "worker"),
    "health": Phrase("健全性", "health"),
    "looked": Phrase("最終画像", "last look"),
    "stream_fault": Phrase("ストリームの異常", "stream fault"),
    "over": Phrase("解消済み", "over"),
    "caps": Phrase("映像", "sends"),
    "probed": Phrase("最終プローブ", "probed"),
    "interval": Phrase("間隔", "every"),
    "do_not_process": Phrase("処理しない", "do not process"),
    "yes": Phrase("はい", "yes"),
    "no": Phrase("いいえ", "no"),
    "preset": Phrase("プリセット", "preset"),
}


def say(key: str, **facts: object) -> str:
    return _chosen(_WORDS[key]).format(**facts)


def label(key: str) -> str:
    """The name of a line that `camera show` prints."""
    return _chosen(_LABELS[key])


def step_name(name: str) -> str:
    return _chosen(STEPS[name]) if name in STEPS else name


def head(key: str) -> tuple[str, ...]:
    """The headings of a table."""
    return tuple(_chosen(_HEADS[key]).split("|"))


def _chosen(phrase: Phrase) -> str:
    return phrase.ja if reader_language() == "ja" else phrase.en
