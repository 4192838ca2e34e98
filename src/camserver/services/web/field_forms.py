"""How a field that has a pattern is written, in words: a pattern itself is for programs.

By the pattern, as it stands where the field is described (wire/, services/web/routes). A test holds every pattern of
the OpenAPI document and of the receivers' models against this table.
"""

from collections.abc import Mapping

from camserver.domain.phrases import Phrase
from camserver.wire import api

FORMS: Mapping[str, Phrase] = {
    # Cameras, workers and streamers.
    api.CAMERA_ID_PATTERN: Phrase(
        "半角の英数字で始め、英数字と . _ - だけを使って64文字以内にしてください",
        "must begin with a letter or digit and hold only letters (A-Z, a-z), digits, . _ and -, 64 at most",
    ),
    api.UUID_PATTERN: Phrase(
        "半角の英数字と - だけのID（36文字以内）にしてください",
        "must be an id of letters (A-Z, a-z), digits and -, at most 36 characters",
    ),
    # Of a live view, which is part of an address.
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$": Phrase(
        "0f8fad5b-d9cb-469f-a165-70867728950e のような小文字のUUIDにしてください",
        "must be a UUID in small letters such as 0f8fad5b-d9cb-469f-a165-70867728950e",
    ),
    r"^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$": Phrase(
        "証明書のSHA-256フィンガープリント（16進数64桁、2桁ごとの : は省略可）にしてください",
        "must be a certificate's SHA-256 fingerprint: 64 hexadecimal digits, with or without : after every two",
    ),
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": Phrase(
        "2026-11-18 のような日付（年-月-日）にしてください", "must be a day such as 2026-11-18 (year-month-day)"
    ),
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": Phrase(
        "07:00 のような時刻（00:00～23:59）にしてください",
        "must be a time of day such as 07:00, from 00:00 to 23:59",
    ),
    r"^[0-9A-Fa-f:.]{2,45}$": Phrase(
        "192.168.1.20 のようなIPアドレスにしてください", "must be an IP address such as 192.168.1.20"
    ),
    r"^[0-9]{1,18}$": Phrase("18桁以内の数字にしてください", "must be a whole number of at most 18 digits"),
    # Objects that a camera is told to expect or to leave out.
    r"^[a-z0-9][a-z0-9_. -]*$": Phrase(
        "半角の英小文字か数字で始め、英小文字・数字・空白と _ . - だけにしてください",
        "must begin with a small letter (a-z) or digit and hold only those, spaces, _ . and -",
    ),
    r"^[a-z][a-z0-9_]{0,31}$": Phrase(
        "英小文字で始め、英小文字・数字・_ だけを使って32文字以内にしてください",
        "must begin with a small letter (a-z) and hold only those, digits and _, at most 32 characters",
    ),
    # A tag.
    r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$": Phrase(
        "behavior.loitering のような . で区切ったタグ（英小文字・数字・_）にしてください",
        "must be a tag such as behavior.loitering: small letters (a-z), digits and _ in parts that . divides",
    ),
    # Of an export.
    r"^[a-z_]{1,64}$": Phrase(
        "表の名前（英小文字と _ で64文字以内）にしてください",
        "must be the name of a table: small letters (a-z) and _, at most 64 characters",
    ),
    # Columns of a sheet; an empty one is none.
    r"^[A-Za-z]{1,3}$": Phrase(
        "C や AB のような列の記号にしてください", "must be the letters of a column such as C or AB"
    ),
    r"^[A-Za-z]{0,3}$": Phrase(
        "C や AB のような列の記号にするか、空にしてください",
        "must be the letters of a column such as C or AB, or empty",
    ),
    r"^FRIGATE_[A-Za-z0-9_]{1,100}$": Phrase(
        "FRIGATE_ で始まる変数名（英数字と _）にしてください",
        "must be a variable whose name begins with FRIGATE_, of letters, digits and _",
    ),
    # What receivers and archives are told.
    r"^[#@]?[^\s#@]{1,80}$": Phrase(
        "#general のようなチャンネル名かID（空白なし、80文字以内）にしてください",
        "must be a channel such as #general, or its id: no spaces, at most 80 characters",
    ),
    r"^[!-~]{8,512}$": Phrase(
        "空白のない半角の英数字と記号で8～512文字にしてください",
        "must be 8 to 512 visible ASCII characters, without spaces",
    ),
    r"^[!-~]{1,128}$": Phrase(
        "空白のない半角の英数字と記号で128文字以内にしてください",
        "must be at most 128 visible ASCII characters, without spaces",
    ),
    r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$": Phrase(
        "バケット名（英小文字・数字・. - で3～63文字、先頭と末尾は英小文字か数字）にしてください",
        "must be the name of a bucket: 3 to 63 small letters (a-z), digits, . and -, neither first nor last . or -",
    ),
    r"^[A-Za-z0-9-]{1,32}$": Phrase(
        "ap-northeast-1 のようなリージョン名にしてください", "must be a region such as ap-northeast-1"
    ),
    r"^[A-Za-z0-9_-]{1,128}$": Phrase(
        "フォルダーのID（アドレスの末尾。英数字と _ - で128文字以内）にしてください",
        "must be a folder's id, the end of its address: letters, digits, _ and -, at most 128 characters",
    ),
    r"^[A-Za-z0-9._+/-]{1,255}$": Phrase(
        "保管先のファイルID（英数字と . _ + / - で255文字以内）にしてください",
        "must be the id of a file at the archive: letters, digits, . _ + / and -, at most 255 characters",
    ),
    r"^[^@\s]+@[^@\s]+$": Phrase(
        "someone@example.org のようなアドレスにしてください", "must be an address such as someone@example.org"
    ),
    # MQTT: an installation's and a client's name.
    r"^[A-Za-z0-9_-]*$": Phrase("使えるのは英数字と _ - です", "may hold only letters (A-Z, a-z), digits, _ and -"),
    r"^[A-Za-z0-9_.-]*$": Phrase(
        "使えるのは英数字と _ . - です", "may hold only letters (A-Z, a-z), digits, _ . and -"
    ),
}
