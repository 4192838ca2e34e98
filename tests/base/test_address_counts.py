"""How many connections each address has: counted without going through all of them."""

import pytest

from camserver.base.address_counts import AddressCounts


def test_each_address_has_so_many_at_once() -> None:
    counts = AddressCounts(2, True, ())
    entered = [counts.enter("203.0.113.7") for _ in range(3)]
    assert counts.are_too_many(entered[0])
    assert not counts.are_too_many(counts.enter("203.0.113.8"))
    counts.leave(entered.pop())
    assert not counts.are_too_many(entered[0])
    for one in entered:
        counts.leave(one)
    assert list(counts._open) == ["203.0.113.8"]


@pytest.mark.parametrize(
    ("most", "spares_loopback", "address", "is_counted"),
    [
        (1, True, "203.0.113.7", True),
        (0, False, "203.0.113.7", False),
        (1, True, "127.0.0.1", False),
        (1, False, "127.0.0.1", True),
        (1, True, "", False),
        (1, True, "198.51.100.9", False),
        (1, True, "2001:db8::1", True),
    ],
)
def test_who_is_counted(most: int, spares_loopback: bool, address: str, is_counted: bool) -> None:
    counts = AddressCounts(most, spares_loopback, ("198.51.100.0/24",))
    assert (counts.enter(address) == address) is (is_counted and address != "")
    assert bool(counts._open) is is_counted
