"""npm's words as exit codes of the set-up, each with a next step."""

import sys

import pytest

from .tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))  # its programs import each other by name, as scripts do

import npm_errors


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("npm error code EINTEGRITY", 24),
        ("npm error code ENOSPC", 21),
        ("npm error network request to the registry failed, reason: getaddrinfo ENOTFOUND", 23),
        ("npm error code ECONNREFUSED", 23),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", 23),
        ("npm error code E403", 23),
        ("npm error code E503", 23),
        ("npm error code E404", 25),
        ("npm error code ETARGET", 25),
    ],
)
def test_known_words_have_a_cause_and_a_next_step(line: str, code: int) -> None:
    cause = npm_errors.cause_of(["npm warn something else", line, "npm error more"])
    assert cause == code
    assert npm_errors.NEXT_STEPS[cause]


def test_a_full_disk_is_told_before_what_it_breaks() -> None:
    assert npm_errors.cause_of(["npm error code ECONNRESET", "npm error ENOSPC: no space left on device"]) == 21


@pytest.mark.parametrize("lines", [[], ["x is not a function"], ["E4040 lines", "DE404"]])
def test_other_words_say_nothing(lines: list[str]) -> None:
    assert npm_errors.cause_of(lines) is None
