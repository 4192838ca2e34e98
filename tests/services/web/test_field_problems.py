"""What is told about a wrong field: the rule, in words, and never the value."""

import ast
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from camserver.services.web import field_problems
from camserver.services.web.field_problems import OWN_JA, known_fields, problem_in_words
from camserver.wire import api
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
    assert known_fields([f"n{index:02}" for index in range(30)]).endswith("n11, …")
