"""What is wrong with a field of a request, in words that name the rule and never the value: it may be a secret.

The library's own sentences are for programmers ("Extra inputs are not permitted"), and some of them show a pattern
that nobody wants to read.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic_core import ErrorDetails

NAMES_SHOWN_MAX = 12
# By the problem's type; the values in braces are its context.
_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "is not written as it must be",
    "too_short": "has too few entries (the least is {min_length})",
    "too_long": "has too many entries (the most is {max_length})",
    "list_type": 'must be a list, such as ["one", "two"]',
    "dict_type": "must be an object",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "literal_error": "must be one of {expected}",
    "json_invalid": "is no JSON",
}


def problem_in_words(field: str, problem: ErrorDetails) -> str:
    """The field and what is wrong with it."""
    kind = problem["type"]
    context: dict[str, Any] = problem.get("ctx", {})
    if kind == "value_error":
        # A sentence of our own models, which names no value.
        return f"{field}: {problem['msg'].removeprefix('Value error, ')}"
    try:
        return f"{field} {_WORDS[kind].format(**context)}"
    except KeyError:
        return f"{field} is wrong ({kind})"


def known_fields(names: Collection[str]) -> str:
    """The names that could have been given, for whoever gave another one."""
    if not names:
        return "there is nothing to set here"
    shown = sorted(names)
    more = ", …" if len(shown) > NAMES_SHOWN_MAX else ""
    return f"known are {', '.join(shown[:NAMES_SHOWN_MAX])}{more}"
