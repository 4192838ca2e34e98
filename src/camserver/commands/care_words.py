"""What `camserver backup`, `restore`, `check`, `doctor`, `install` and `db copy` say, in Japanese and English."""

from camserver.commands.shown import reader_language
from camserver.domain.phrases import Phrase

_WORDS = {
    "database": Phrase("データベース", "Database"),
    "objects": Phrase("画像と動画", "Pictures and clips"),
    "verify": Phrase("確認中", "Verifying"),
    "copying": Phrase("コピー中", "Copying"),
    "backed_up": Phrase(
        "{file} にバックアップしました（データベース {database_mb} MB、画像と動画 {objects} 件、{objects_mb} MB）。",
        "Backed up to {file} (database {database_mb} MB, {objects} pictures and clips, {objects_mb} MB).",
    ),
    "cleared_broken": Phrase(
        "途中で終わったバックアップの残り（{file}）を削除しました。",
        "Removed what a backup that was broken off had left: {file}.",
    ),
    "by_reference": Phrase(
        "画像と動画は含まれていません。{where} を別に保存してください。",
        "Pictures and clips are not in it: keep {where} yourself.",
    ),
    "gone": Phrase(
        "{count} 件の画像や動画は、コピーする前に削除されていました。",
        "{count} pictures or clips were deleted before their turn came.",
    ),
    "secrets_apart": Phrase(
        "鍵は含まれていません（{names}）。--secrets で別のファイルに書き出せます。"
        "鍵がないと保存したパスワードは読めません。",
        "Secrets are not in it ({names}). Write them to a file of their own with --secrets: without them stored "
        "passwords can't be read.",
    ),
    "secrets_written": Phrase(
        "鍵を {file} に書き出しました。バックアップとは別の場所に保管してください。",
        "Secrets were written to {file}; keep them elsewhere than the backup.",
    ),
    "verified": Phrase(
        "{file} は完全です（{taken} 作成、バージョン {version}、画像と動画 {objects} 件）。",
        "{file} is whole (made {taken} by version {version}, {objects} pictures and clips).",
    ),
    "restored": Phrase(
        "{file} から復元しました（{taken} 作成）。camserver を起動できます。全員がもう一度サインインします。",
        "Restored from {file} (made {taken}). camserver can be started; everybody signs in again.",
    ),
    "copied": Phrase(
        "{tables} 個の表、{rows} 行をコピーし、すべて一致することを確かめました。"
        "[store] url を新しいデータベースに変えてください。",
        "Copied {rows} rows of {tables} tables and compared them all. Set [store] url to the new database.",
    ),
    "fine": Phrase("すべて正常です。", "Everything is fine."),
    "fixed": Phrase("修復しました", "fixed"),
    "problems": Phrase("{count} 件の問題があります", "{count} checks found something wrong"),
    "report": Phrase(
        "{file} に書き出しました。送る前に一度目を通してください。",
        "Written to {file}. Read it once before you send it.",
    ),
    "would_write": Phrase("# {path} （モード {mode}）", "# {path} (mode {mode})"),
    "would_run": Phrase("# 実行: {command}", "# run: {command}"),
    "wrote": Phrase("書き込み: {path}", "wrote {path}"),
    "ran": Phrase("実行: {command}", "ran {command}"),
    "installed": Phrase(
        "インストールしました。起動: systemctl start {unit}\n"
        "はじめてなら、そのあと camserver setup-link で最初の管理者を作るリンクを表示します。",
        "Installed. Start it with: systemctl start {unit}\n"
        "The first time, make the first administrator afterwards by the link of: camserver setup-link",
    ),
    "installed_site": Phrase(
        "インストールしました。camserver worker enroll で登録し、[worker] server_url を設定してから起動します: "
        "systemctl start {unit}",
        "Installed. Enroll this worker (camserver worker enroll), set [worker] server_url, then start it with: "
        "systemctl start {unit}",
    ),
}


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)
