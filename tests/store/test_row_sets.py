"""Statements for many rows, made of the one for one row."""

import pytest

from camserver.base.errors import Bug
from camserver.store.row_sets import columns, joined, parted_values, unnested

TYPES = {"a": "int8", "b": "text"}
SOURCE = "unnest(:as::int8[], :bs::text[]) AS given_(given_a, given_b)"


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (
            "UPDATE t SET b = :b WHERE a = :a",
            f"UPDATE t SET b = given_.given_b FROM {SOURCE} WHERE a = given_.given_a",
        ),
        (
            "UPDATE t SET b = (SELECT c FROM u WHERE u.b = :b) WHERE a = :a::int8",
            f"UPDATE t SET b = (SELECT c FROM u WHERE u.b = given_.given_b) FROM {SOURCE} "
            "WHERE a = given_.given_a::int8",
        ),
        (
            "INSERT INTO t (a, b, c) VALUES (:a, lower(:b), 1) ON CONFLICT DO NOTHING",
            f"INSERT INTO t (a, b, c)  SELECT given_.given_a, lower(given_.given_b), 1 FROM {SOURCE} "
            " ON CONFLICT DO NOTHING",
        ),
    ],
)
def test_parameters_become_columns_of_what_is_joined(one: str, many: str) -> None:
    assert unnested(one, TYPES) == many


@pytest.mark.parametrize("text", ["UPDATE t SET b = :b", "DELETE FROM t WHERE a = :a", "INSERT INTO t SELECT :a"])
def test_what_can_not_be_made_one_is_refused(text: str) -> None:
    with pytest.raises(Bug):
        unnested(text, TYPES)


def test_an_update_is_of_the_table_joined_with_the_given_rows() -> None:
    found = joined("UPDATE t SET b = :b, c = (SELECT 1 FROM u WHERE u.b = :b AND u.d LIKE '%') WHERE a = :a")
    assert found.names == ("b", "a")
    assert f"{found.head}{found.first} UNION ALL VALUES {found.other}{found.tail}" == (
        "UPDATE (SELECT %s AS given_b, %s AS given_a UNION ALL VALUES (%s, %s)) AS given_ STRAIGHT_JOIN t "
        "FORCE INDEX (PRIMARY) "
        "SET b = given_.given_b, c = (SELECT 1 FROM u WHERE u.b = given_.given_b AND u.d LIKE '%') "
        "WHERE a = given_.given_a"
    )


@pytest.mark.parametrize(
    "text", ["UPDATE t SET b = :b", "UPDATE t SET b = 1 WHERE a IN (:as...)", "INSERT INTO t (a) VALUES (:a)"]
)
def test_what_is_not_an_update_of_one_row_is_not_joined(text: str) -> None:
    with pytest.raises(Bug):
        joined(text)


def test_rows_become_columns() -> None:
    assert columns(("a", "b"), [{"a": 1, "b": "x"}, {"a": 2, "b": None}]) == {"as": [1, 2], "bs": ["x", None]}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "INSERT INTO t (a) VALUES (f(%s), (2)) RETURNING a",
            ("INSERT INTO t (a) VALUES ", "(f(%s), (2))", " RETURNING a"),
        ),
        (
            "INSERT INTO t VALUES (%s) ON DUPLICATE KEY UPDATE a = VALUES(a)",
            ("INSERT INTO t VALUES ", "(%s)", " ON DUPLICATE KEY UPDATE a = VALUES(a)"),
        ),
        ("INSERT INTO t (a) SELECT %s", None),
        ("UPDATE t SET a = VALUES (%s)", None),
        ("INSERT INTO t VALUES (%s", None),
    ],
)
def test_an_insert_is_parted_around_its_values(text: str, parts: tuple[str, str, str] | None) -> None:
    assert parted_values(text) == parts
