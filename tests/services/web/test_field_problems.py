"""What is told about a wrong field: the rule, in words, and never the value."""

import ast
import json
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from camserver.services.web import field_problems
from camserver.services.web.field_forms import FORMS
from camserver.services.web.field_problems import OWN_JA, fields_at, known_fields, problem_in_words
from camserver.services.web.openapi import document_text
from camserver.wire import api
from camserver.wire.api import receivers
from camserver.wire.api.mqtt import _prefix
from tests.services.web.rig import RunningWeb


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str = Field("fine", min_length=3, max_length=5, pattern="^[a-z]+$")
    number: int = Field(1, ge=0, le=3)
    flag: bool = False
    names: list[str] = Field(["a"], min_length=1)
    ratio: float = Field(0.5, multiple_of=0.5)
    choice: Literal["a", "b", "c"] = "a"

    @field_validator("names")
    @classmethod
    def _no_empty_name(cls, names: list[str]) -> list[str]:
        if "" in names:
            raise ValueError("must not hold an empty name")
        return names


class Needed(BaseModel):
    must: str


@pytest.mark.parametrize(
    ("values", "words", "words_ja"),
    [
        ({"word": "x"}, "f must have at least 3 characters", "f：3文字以上にしてください"),
        ({"word": "secret-value"}, "f must have at most 5 characters", "f：5文字以下にしてください"),
        ({"word": "A123"}, "f is not written as it must be", "f：書き方が正しくありません"),
        (
            {"word": "\ud800"},
            "f holds half of a character (a lone surrogate), which is no text",
            "f：文字として正しくないもの（片方だけのサロゲート）が含まれています",
        ),
        ({"word": 1}, "f must be text", "f：文字列で指定してください"),
        ({"number": 9}, "f must be at most 3", "f：3 以下にしてください"),
        ({"number": -1}, "f must be at least 0", "f：0 以上にしてください"),
        ({"number": "many"}, "f must be a whole number", "f：整数で指定してください"),
        ({"flag": "maybe"}, "f must be true or false", "f：true か false で指定してください"),
        (
            {"names": "one"},
            'f must be a list, such as ["one", "two"]',
            'f：["a", "b"] のようなリストで指定してください',
        ),
        ({"names": []}, "f has too few entries (the least is 1)", "f：1件以上にしてください"),
        ({"names": [""]}, "f: must not hold an empty name", "f：値が正しくありません"),
        ({"colour": "red"}, "f is not known here", "fという項目はありません"),
        ({"choice": "d"}, "f must be one of 'a', 'b' or 'c'", "f：次のいずれかにしてください: 'a', 'b', 'c'"),
        ({"ratio": 0.3}, "f is wrong (multiple_of)", "f：値が正しくありません（multiple_of）"),
    ],
)
def test_the_rule_is_named_in_both_languages(values: dict[str, object], words: str, words_ja: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(values)
    [problem] = caught.value.errors()
    assert problem_in_words("f", problem) == words
    assert problem_in_words("f", problem, "ja") == words_ja


def test_what_is_missing_is_said_in_both_languages() -> None:
    with pytest.raises(ValidationError) as caught:
        Needed.model_validate({})
    [problem] = caught.value.errors()
    assert (problem_in_words("f", problem), problem_in_words("f", problem, "ja")) == ("f is missing", "fがありません")


def test_every_type_fills_its_words_from_the_same_values() -> None:
    context = {name: 1 for name in ("min_length", "max_length", "le", "lt", "ge", "gt", "expected", "expected_tags")}
    for kind, phrase in field_problems._WORDS.items():
        assert any("\u3040" <= one <= "\u9fff" for one in phrase.ja.format(**context)), kind
        assert phrase.en.format(**context).isascii(), kind


def test_every_sentence_of_our_own_models_has_its_japanese() -> None:
    said = set()
    for file in Path(str(api.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "ValueError"
                and isinstance(node.args[0], ast.Constant)
            ):
                said.add(node.args[0].value)
    assert said == set(OWN_JA)
    with pytest.raises(ValueError, match="MQTT topic prefix") as caught:
        _prefix("a b")
    assert field_problems._own_ja(str(caught.value)) == field_problems._PREFIX_JA


async def test_a_wrong_request_is_answered_in_the_readers_language(web: RunningWeb) -> None:
    for language, told in (("ja", "入力内容に誤りがあります: body.nameがありません"), ("en", "body.name is missing")):
        headers = {**web.local_admin, "Accept-Language": language}
        reply = await web.browser().ask("POST", "/api/notify/rules", {}, headers=headers)
        assert (reply.status, told in reply.body["message"]) == (400, True), reply.body
        asked = {"name": "x", "kind": "webhook", "secrets": {"url": "nonsense", "odd": 1}}
        reply = await web.browser().ask("POST", "/api/receivers", asked, headers=headers)
        assert ("secrets.oddという項目はありません" in reply.body["message"]) == (language == "ja"), reply.body
        assert ("secrets.odd is not known here" in reply.body["message"]) == (language == "en"), reply.body


def test_the_names_that_could_be_given_are_told_up_to_a_bound() -> None:
    assert known_fields({"url", "signing_key"}) == "known are signing_key, url"
    assert known_fields({"url", "signing_key"}, "ja") == "使える項目は signing_key, url"
    assert known_fields(()) == "there is nothing to set here"
    assert known_fields([f"n{index:02}" for index in range(40)]).endswith("n31, …")
    assert known_fields({"b", "a"}, "en", "body.source") == "known in body.source are a, b"
    assert known_fields({"b", "a"}, "ja", "body.source") == "body.sourceで使える項目は a, b"


def patterns_in(schema: object) -> set[str]:
    """Of fields, and of the names in a mapping."""
    if isinstance(schema, list):
        return {found for one in schema for found in patterns_in(one)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
    own |= set(schema.get("patternProperties", ()))
    return own | {found for one in schema.values() for found in patterns_in(one)}


def test_every_pattern_has_its_words_in_both_languages() -> None:
    models = {*receivers.CONFIGS.values(), *receivers.SECRETS.values()}
    told = patterns_in([json.loads(document_text()), *(model.model_json_schema() for model in models)])
    assert told == set(FORMS)
    for pattern, phrase in FORMS.items():
        assert any("\u3040" <= one <= "\u9fff" for one in phrase.ja), pattern
        assert phrase.en.isascii(), pattern
        assert phrase.en.startswith(("must be ", "must begin ", "may hold ")), pattern


@pytest.mark.parametrize(
    ("body", "told", "told_ja"),
    [
        (
            b'{"title": "a", b}',
            "character 16: a field's name in double quotes",
            '16文字目：""で囲んだ項目名が必要です',
        ),
        (b"{", "character 2: a field's name", '2文字目：""で囲んだ項目名'),
        (b'{"title" "a"}', "character 10: a colon", "10文字目：「:」"),
        (b'{"title": "a" "b"}', "character 15: a comma or", "15文字目：「,」か"),
        (b'{"title": }', "character 11: a value", "11文字目：値が"),
        (b'{"title": "a"} x', "character 16: something follows", "16文字目：JSONの終わり"),
        (b'{"title": "a', "character 11: the text that begins there", "11文字目：文字列が閉じられていません"),
        (b'{"title": "a\nb"}', "character 13: a text holds a line break", "13文字目：文字列に改行"),
        (b'{"title": "\\x"}', "character 12: that backslash", "12文字目：「\\」"),
        (b"title=a", "character 1: a value", "1文字目：値が"),
    ],
)
async def test_a_body_that_is_no_json_is_no_field(web: RunningWeb, body: bytes, told: str, told_ja: str) -> None:
    headers = {**web.local_admin, "Content-Type": "application/json"}
    for language, said in (
        ("en", f"the body is no JSON (at {told}"),
        ("ja", f"本文がJSONとして読めません（{told_ja}"),
    ):
        asked = {**headers, "Accept-Language": language}
        reply = await web.browser().ask("POST", "/api/cases", headers=asked, data=body)
        assert (reply.status, said in reply.body["message"]) == (400, True), reply.body["message"]
        assert reply.body["details"]["fields"] == [{"field": "body", "problem": "json_invalid"}]


class Inner(BaseModel):
    here: int = Field(1, alias="from")


class Outer(BaseModel):
    one: Inner | None = None
    many: Annotated[list[Annotated[Inner, Field()] | None], Field(max_length=3)] = []
    named: dict[str, Needed] = {}
    free: dict[str, object] = {}


def test_the_names_of_an_object_are_found_by_its_place() -> None:
    assert fields_at(Outer, ()) == {"one", "many", "named", "free"}
    assert fields_at(Outer | None, ("one",)) == fields_at(Outer, ("many", 2)) == {"from"}
    assert fields_at(list[Outer], (0, "named", "x")) == {"must"}
    for nowhere in (("free", "x"), ("odd",), ("one", "from"), ("many",)):
        assert fields_at(Outer, nowhere) is None
    assert fields_at(None, ()) is None


async def test_a_field_that_is_not_known_is_told_those_that_are(web: RunningWeb) -> None:
    async def told(method: str, path: str, body: object, language: str = "en") -> str:
        headers = {**web.local_admin, "Accept-Language": language}
        reply = await web.browser().ask(method, path, body, headers=headers)
        assert reply.status == 400
        return str(reply.body["message"])

    assert (await told("POST", "/api/cases", {"titel": "a"})).endswith(
        "body.titel is not known here; known are note, title"
    )
    assert (await told("POST", "/api/cases", {"titel": "a"}, "ja")).endswith("使える項目は note, title")
    both = await told("POST", "/api/probes", {"source": {"url": "rtsp://10.0.0.9/", "uesr": "x"}, "sit": "main"})
    assert "known in body.source are password, type, url, user" in both
    assert "known in body are " in both
    long = await told("POST", "/api/cases", {"y" * 5000: 1})
    assert "y" * 64 in long
    assert len(long) < 200


async def test_how_a_field_is_written_is_said(web: RunningWeb) -> None:
    for path, body, language, said in (
        ("/api/cameras", {"camera_id": "my cam"}, "en", "body.camera_id must begin with a letter or digit"),
        ("/api/cameras", {"camera_id": "my cam"}, "ja", "body.camera_id：半角の英数字で始め"),
        ("/api/notify/rules", {"quiet": {"from": "7:00"}}, "en", "must be a time of day such as 07:00"),
        ("/api/notify/rules", {"quiet": {"to": "24:00"}}, "ja", "07:00 のような時刻"),
    ):
        reply = await web.browser().post(path, body, {**web.local_admin, "Accept-Language": language})
        assert (reply.status, said in reply.body["message"]) == (400, True), reply.body
    reply = await web.browser().get("/api/cameras/cam_1/looks?day=18.11.2026", web.local_admin)
    assert "query.day must be a day such as 2026-11-18" in reply.body["message"]
