"""What is wrong with a field of a request, in words that name the rule and never the value: it may be a secret.

The library's own sentences are for programmers ("Extra inputs are not permitted"), and some of them show a pattern
that nobody wants to read. Both languages stand side by side in one table, and so do the sentences of our own models,
which are written in English where the rule is (wire/api).
"""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from camserver.domain.phrases import Phrase
from camserver.services.web.messages import Language

NAMES_SHOWN_MAX = 12
_WHOLE = Phrase("整数で指定してください", "must be a whole number")
_NUMBER = Phrase("数値で指定してください", "must be a number")
_TRUTH = Phrase("true か false で指定してください", "must be true or false")
_TIME = Phrase("正しい日時ではありません", "is no date and time")
_ONE_OF = Phrase("次のいずれかにしてください: {expected}", "must be one of {expected}")
# By the problem's type; the values in braces are its context.
_WORDS: Mapping[str, Phrase] = {
    "missing": Phrase("がありません", "is missing"),
    "extra_forbidden": Phrase("という項目はありません", "is not known here"),
    "string_type": Phrase("文字列で指定してください", "must be text"),
    "string_too_short": Phrase("{min_length}文字以上にしてください", "must have at least {min_length} characters"),
    "string_too_long": Phrase("{max_length}文字以下にしてください", "must have at most {max_length} characters"),
    "string_pattern_mismatch": Phrase("書き方が正しくありません", "is not written as it must be"),
    "too_short": Phrase("{min_length}件以上にしてください", "has too few entries (the least is {min_length})"),
    "too_long": Phrase("{max_length}件以下にしてください", "has too many entries (the most is {max_length})"),
    "list_type": Phrase('["a", "b"] のようなリストで指定してください', 'must be a list, such as ["one", "two"]'),
    "tuple_type": Phrase('["a", "b"] のようなリストで指定してください', 'must be a list, such as ["one", "two"]'),
    "dict_type": Phrase("オブジェクト（{{…}}）で指定してください", "must be an object"),
    "model_type": Phrase("オブジェクト（{{…}}）で指定してください", "must be an object"),
    "model_attributes_type": Phrase("オブジェクト（{{…}}）で指定してください", "must be an object"),
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "int_parsing": _WHOLE,
    "int_parsing_size": Phrase("数値が大きすぎます", "is too large a number"),
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "less_than_equal": Phrase("{le} 以下にしてください", "must be at most {le}"),
    "less_than": Phrase("{lt} より小さくしてください", "must be less than {lt}"),
    "greater_than_equal": Phrase("{ge} 以上にしてください", "must be at least {ge}"),
    "greater_than": Phrase("{gt} より大きくしてください", "must be more than {gt}"),
    "literal_error": _ONE_OF,
    "enum": _ONE_OF,
    "union_tag_invalid": Phrase("次のいずれかにしてください: {expected_tags}", "must be one of {expected_tags}"),
    "json_invalid": Phrase("JSONとして読めません", "is no JSON"),
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
}
# Sentences of our own models, by their English.
OWN_JA: Mapping[str, str] = {
    "must be on one line, of characters that can be seen": "改行や制御文字を含まない、1行の文字列にしてください",
    "give either lease_id or camera_id": "lease_id か camera_id のどちらか一方を指定してください",
    "must begin with https:// or http:// and name a host": "https:// または http:// で始まるアドレスにしてください",
    "must not be link-local, where clouds keep secrets, or of several hosts": "リンクローカルやマルチキャストなどの"
    "アドレスには送れません",
    "must not hold spaces or characters beyond ASCII": "空白と半角英数記号以外の文字は使えません",
    "must be a plain address such as cameras@example.org": "cameras@example.org のようなアドレスにしてください",
    "either webhook_url or bot_token is needed": "webhook_url と bot_token のどちらかが必要です",
    "must be a whole path such as /mnt/archive, without . and ..": "/mnt/archive のような絶対パスにしてください"
    "（. と .. は使えません）",
    "may hold letters, digits, . _ + - and slashes": "使えるのは英数字と . _ + - / です",
    "must be the JSON key file of a Google service account, as a text": "Googleサービスアカウントの"
    "鍵ファイル（JSON）を文字列で指定してください",
    "must begin with mailto: or https://": "mailto: または https:// で始めてください",
    "must be a host name or an address, without mqtt:// and port": "ホスト名かアドレスだけを指定してください"
    "（mqtt:// とポートは不要です）",
    "must be a certificate in PEM, beginning with -----BEGIN CERTIFICATE-----": "-----BEGIN CERTIFICATE----- で始まる"
    "PEM形式の証明書を指定してください",
}
# The one sentence that comes from a rule of the domain: whatever is said about a topic prefix.
_PREFIX_BEGINS = "the MQTT topic prefix "
_PREFIX_JA = "使えるのは英数字と _ . ~ - を / で区切ったものです"
_OWN_OTHERWISE_JA = "値が正しくありません"


def problem_in_words(field: str, problem: ErrorDetails, language: Language = "en") -> str:
    """The field and what is wrong with it."""
    kind = problem["type"]
    if kind == "value_error":
        # A sentence of our own models, which names no value.
        said = problem["msg"].removeprefix("Value error, ")
        return f"{field}：{_own_ja(said)}" if language == "ja" else f"{field}: {said}"
    phrase = _WORDS.get(kind)
    if phrase is None:
        return f"{field}：値が正しくありません（{kind}）" if language == "ja" else f"{field} is wrong ({kind})"
    context: dict[str, Any] = dict(problem.get("ctx", {}))
    if language == "en":
        return f"{field} {phrase.en.format(**context)}"
    if "expected" in context:
        context["expected"] = str(context["expected"]).replace(" or ", ", ")
    joint = "" if phrase.ja.startswith(("が", "という")) else "："
    return f"{field}{joint}{phrase.ja.format(**context)}"


def _own_ja(said: str) -> str:
    return _PREFIX_JA if said.startswith(_PREFIX_BEGINS) else OWN_JA.get(said, _OWN_OTHERWISE_JA)


def known_fields(names: Collection[str], language: Language = "en") -> str:
    """The names that could have been given, for whoever gave another one."""
    if not names:
        return "ここで設定できる項目はありません" if language == "ja" else "there is nothing to set here"
    shown = sorted(names)
    more = ", …" if len(shown) > NAMES_SHOWN_MAX else ""
    listed = f"{', '.join(shown[:NAMES_SHOWN_MAX])}{more}"
    return f"使える項目は {listed}" if language == "ja" else f"known are {listed}"
