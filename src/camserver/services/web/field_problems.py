"""What is wrong with a field of a request, in words that name the rule and never the value: it may be a secret.

The library's own sentences are for programmers ("Extra inputs are not permitted"), and some of them show a pattern
that nobody wants to read. Both languages stand side by side in one table, and so do the sentences of our own models,
which are written in English where the rule is (wire/api).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from camserver.domain.phrases import Phrase
from camserver.services.web.field_forms import FORMS
from camserver.services.web.messages import Language

# More than any body has.
NAMES_SHOWN_MAX = 32
# A name that is no field's may be as long as the body.
PART_SHOWN_MAX = 64
_WHOLE = Phrase("整数で指定してください", "must be a whole number")
_NUMBER = Phrase("数値で指定してください", "must be a number")
_TRUTH = Phrase("true か false で指定してください", "must be true or false")
_TIME = Phrase("正しい日時ではありません", "is no date and time")
_ONE_OF = Phrase("次のいずれかにしてください: {expected}", "must be one of {expected}")
# By the problem's type; the values in braces are its context.
_WORDS: Mapping[str, Phrase] = {
    "missing": Phrase("がありません", "is missing"),
    "extra_forbidden": Phrase("という項目はありません", "is not known here"),
    "string_unicode": Phrase(
        "文字として正しくないもの（片方だけのサロゲート）が含まれています",
        "holds half of a character (a lone surrogate), which is no text",
    ),
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
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
}
# What a JSON reader says of a body that it can't read, by how it begins.
_NO_JSON: Mapping[str, Phrase] = {
    "Expecting value": Phrase("値が必要です", "a value is expected there"),
    "Expecting property name": Phrase(
        '""で囲んだ項目名が必要です', "a field's name in double quotes is expected there"
    ),
    "Expecting ':'": Phrase("「:」が必要です", "a colon is expected there"),
    "Expecting ','": Phrase("「,」か閉じ括弧が必要です", "a comma or the closing bracket is expected there"),
    "Illegal trailing comma": Phrase("余分な「,」があります", "nothing follows the comma there"),
    "Extra data": Phrase("JSONの終わりの後に余分な文字があります", "something follows its end"),
    "Unterminated string": Phrase("文字列が閉じられていません", "the text that begins there is not closed"),
    "Invalid control": Phrase(
        "文字列に改行などの制御文字があります", "a text holds a line break or another control character"
    ),
    "Invalid \\": Phrase("「\\」の使い方が正しくありません", "that backslash begins no escape of JSON"),
}
_NO_JSON_OTHERWISE = Phrase("JSONの文法に合いません", "it breaks the rules of JSON")
# Sentences of our own models, by their English.
OWN_JA: Mapping[str, str] = {
    "must be on one line, of characters that can be seen": "改行や制御文字を含まない、1行の文字列にしてください",
    "must hold something that can be seen": "空白だけにはできません。名前を入力してください",
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
    if kind == "json_invalid":
        return _no_json(problem, language)
    if kind == "value_error":
        # A sentence of our own models, which names no value.
        said = problem["msg"].removeprefix("Value error, ")
        return f"{field}：{_own_ja(said)}" if language == "ja" else f"{field}: {said}"
    context: dict[str, Any] = dict(problem.get("ctx", {}))
    phrase = FORMS.get(str(context.get("pattern"))) or _WORDS.get(kind)
    if phrase is None:
        return f"{field}：値が正しくありません（{kind}）" if language == "ja" else f"{field} is wrong ({kind})"
    if language == "en":
        return f"{field} {phrase.en.format(**context)}"
    if "expected" in context:
        context["expected"] = str(context["expected"]).replace(" or ", ", ")
    joint = "" if phrase.ja.startswith(("が", "という")) else "："
    return f"{field}{joint}{phrase.ja.format(**context)}"


def field_of(problem: ErrorDetails, *above: str) -> str:
    """Where it is, by names: what is no JSON has none, and is told by its place among the letters."""
    place = problem["loc"][:1] if problem["type"] == "json_invalid" else problem["loc"]
    return ".".join(str(part)[:PART_SHOWN_MAX] for part in (*above, *place))


def _no_json(problem: ErrorDetails, language: Language) -> str:
    said = str(problem.get("ctx", {}).get("error", ""))
    phrase = next((one for begins, one in _NO_JSON.items() if said.startswith(begins)), _NO_JSON_OTHERWISE)
    # Readers count from 0, people and their editors from 1.
    at = problem["loc"][-1]
    letter = at + 1 if isinstance(at, int) else 1
    if language == "ja":
        return f"本文がJSONとして読めません（{letter}文字目：{phrase.ja}）"
    return f"the body is no JSON (at character {letter}: {phrase.en})"


def _own_ja(said: str) -> str:
    return _PREFIX_JA if said.startswith(_PREFIX_BEGINS) else OWN_JA.get(said, _OWN_OTHERWISE_JA)


def known_fields(names: Collection[str], language: Language = "en", place: str = "") -> str:
    """The names that could have been given, for whoever gave another one; `place` where that is not plain."""
    if not names:
        return "ここで設定できる項目はありません" if language == "ja" else "there is nothing to set here"
    shown = sorted(names)
    more = ", …" if len(shown) > NAMES_SHOWN_MAX else ""
    listed = f"{', '.join(shown[:NAMES_SHOWN_MAX])}{more}"
    if language == "ja":
        return f"{place}で使える項目は {listed}" if place else f"使える項目は {listed}"
    return f"known in {place} are {listed}" if place else f"known are {listed}"


def fields_at(body: object, path: Sequence[int | str]) -> set[str] | None:
    """The names that the object at this path of such a body may have; None where no object is described there."""
    places = list(_alternatives(body))
    for part in path:
        places = [inner for place in places for one in _inside(place, part) for inner in _alternatives(one)]
    models = [place for place in places if _is_model(place)]
    if not models:
        return None
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _alternatives(one)
    else:
        yield annotation


def _inside(place: Any, part: int | str) -> Iterator[Any]:
    if _is_model(place):
        for name, field in place.model_fields.items():
            if part == (field.alias or name):
                yield field.annotation
    elif get_args(place):
        # Of a mapping its values, of a list what it is a list of.
        yield get_args(place)[-1 if isinstance(part, str) else 0]


def _is_model(place: Any) -> bool:
    return isinstance(place, type) and issubclass(place, BaseModel)
