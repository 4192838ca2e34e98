"""What is told about a wrong field: the rule, in words, and never the value."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from camserver.services.web.field_problems import known_fields, problem_in_words


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str = Field("fine", min_length=3, max_length=5, pattern="^[a-z]+$")
    number: int = Field(1, ge=0, le=3)
    flag: bool = False
    names: list[str] = Field(["a"], min_length=1)
    ratio: float = Field(0.5, multiple_of=0.5)

    @field_validator("names")
    @classmethod
    def _no_empty_name(cls, names: list[str]) -> list[str]:
        if "" in names:
            raise ValueError("must not hold an empty name")
        return names


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"word": "x"}, "f must have at least 3 characters"),
        ({"word": "secret-value"}, "f must have at most 5 characters"),
        ({"word": "A123"}, "f is not written as it must be"),
        ({"number": 9}, "f must be at most 3"),
        ({"number": -1}, "f must be at least 0"),
        ({"number": "many"}, "f must be a whole number"),
        ({"flag": "maybe"}, "f must be true or false"),
        ({"names": "one"}, 'f must be a list, such as ["one", "two"]'),
        ({"names": []}, "f has too few entries (the least is 1)"),
        ({"names": [""]}, "f: must not hold an empty name"),
        ({"colour": "red"}, "f is not known here"),
        ({"ratio": 0.3}, "f is wrong (multiple_of)"),
    ],
)
def test_the_rule_is_named(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(values)
    [problem] = caught.value.errors()
    assert problem_in_words("f", problem) == words


def test_the_names_that_could_be_given_are_told_up_to_a_bound() -> None:
    assert known_fields({"url", "signing_key"}) == "known are signing_key, url"
    assert known_fields(()) == "there is nothing to set here"
    assert known_fields([f"n{index:02}" for index in range(30)]).endswith("n11, …")
