"""What each dialect's driver is given; test_tx.py shows that the databases then answer alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.store import Dialect, Sql
from camserver.store.sql import EmptyList, render

S, P, M = Dialect.SQLITE, Dialect.POSTGRES, Dialect.MARIADB


@pytest.mark.parametrize(
    ("dialect", "text", "rendered", "names"),
    [
        (S, "a = :x AND b = :y", "a = ? AND b = ?", ("x", "y")),
        (P, "a = :x AND b = :y", "a = $1 AND b = $2", ("x", "y")),
        (M, "a = :x AND b = :y", "a = %s AND b = %s", ("x", "y")),
        # A name used twice is one parameter where the driver numbers them, two where it does not.
        (S, "a = :x OR b = :x", "a = ? OR b = ?", ("x", "x")),
        (P, "a = :x OR b = :x", "a = $1 OR b = $1", ("x",)),
        (M, "a = :x OR b = :x", "a = %s OR b = %s", ("x", "x")),
        # A cast is no parameter, and a parameter may be cast.
        (P, "a::text = :x::text", "a::text = $1::text", ("x",)),
        (P, "unnest(:x::bigint[])", "unnest($1::bigint[])", ("x",)),
        # A percent sign is the MariaDB driver's own mark.
        (S, "a LIKE '%:' AND b = :x", "a LIKE '%:' AND b = ?", ("x",)),
        (P, "a LIKE '5%' AND b = :x", "a LIKE '5%' AND b = $1", ("x",)),
        (M, "a LIKE '5%' AND b % 2 = :x", "a LIKE '5%%' AND b %% 2 = %s", ("x",)),
        (S, "a IN (:ids...)", "a IN (SELECT value FROM json_each(?))", ("ids",)),
        (P, "a IN (:ids...)", "a = ANY($1)", ("ids",)),
        (M, "a IN (:ids...)", "a IN %s", ("ids",)),
        (S, "a NOT IN ( :ids... )", "a NOT IN (SELECT value FROM json_each(?))", ("ids",)),
        (P, "a NOT IN (:ids...)", "a <> ALL($1)", ("ids",)),
        (M, "a NOT  IN (:ids...)", "a NOT IN %s", ("ids",)),
        (S, "SELECT 1 FOR UPDATE", "SELECT 1", ()),
        (S, "SELECT 1\n  FOR UPDATE SKIP LOCKED", "SELECT 1", ()),
        (S, "SELECT 1 FOR SHARE", "SELECT 1", ()),
        (P, "SELECT 1 FOR UPDATE SKIP LOCKED", "SELECT 1 FOR UPDATE SKIP LOCKED", ()),
        (P, "SELECT 1 FOR SHARE", "SELECT 1 FOR SHARE", ()),
        (M, "SELECT 1 FOR UPDATE SKIP LOCKED", "SELECT 1 FOR UPDATE SKIP LOCKED", ()),
        (M, "SELECT 1 FOR SHARE", "SELECT 1 LOCK IN SHARE MODE", ()),
    ],
)
def test_rendering(dialect: Dialect, text: str, rendered: str, names: tuple[str, ...]) -> None:
    found = render(text, dialect)
    assert (found.text, found.names) == (rendered, names)


def test_arguments_come_in_the_drivers_order() -> None:
    text = "a = :x AND b IN (:ids...) AND c = :y AND d = :x"
    params = {"y": 2, "x": 1, "ids": (7, 8)}
    assert render(text, S).arguments(S, params) == (1, "[7, 8]", 2, 1)
    assert render(text, P).arguments(P, params) == (1, [7, 8], 2)
    assert render(text, M).arguments(M, params) == (1, (7, 8), 2, 1)


def test_an_empty_list_has_a_spelling_everywhere() -> None:
    text = "a IN (:ids...)"
    assert render(text, S).arguments(S, {"ids": []}) == ("[]",)
    assert render(text, P).arguments(P, {"ids": ()}) == ([],)
    (argument,) = render(text, M).arguments(M, {"ids": []})
    assert isinstance(argument, EmptyList)


def test_a_dialects_own_text_wins() -> None:
    statement = Sql("portable :x", mariadb="of its own :y", sqlite="")
    assert render(statement, P).text == "portable $1"
    assert render(statement, M).text == "of its own %s"
    assert render(statement, S).text == ""


@given(st.lists(st.sampled_from(["x", "y", "long_name"]), min_size=1, max_size=8))
def test_every_placeholder_has_its_argument(names: list[str]) -> None:
    text = ", ".join(f":{name}" for name in names)
    params = {name: name.upper() for name in names}
    for dialect, mark in ((S, "?"), (M, "%s")):
        found = render(text, dialect)
        assert found.text.count(mark) == len(names)
        assert found.arguments(dialect, params) == tuple(name.upper() for name in names)
    found = render(text, P)
    numbered = found.arguments(P, params)
    shown = [numbered[int(mark[1:]) - 1] for mark in found.text.split(", ")]
    assert shown == [name.upper() for name in names]
