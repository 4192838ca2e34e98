import pytest

from camserver.base.errors import TooManyTries
from camserver.base.secrets import Secret
from camserver.services.web import throttle
from camserver.services.web.throttle import (
    FORGET_AFTER_MS,
    FREE_TRIES,
    FREE_TRIES_OF_ADDRESS,
    WAIT_MAX_MS,
    Devices,
    Throttle,
    keys_of,
)


def wait_sec(tries: Throttle, keys: dict[str, int], now_ms: int) -> int:
    with pytest.raises(TooManyTries) as refused:
        tries.count_try(keys, now_ms)
    wait = refused.value.details["retry_after_sec"]
    assert isinstance(wait, int)
    return wait


def test_waits_double_up_to_a_cap_and_waiting_costs_nothing() -> None:
    tries, keys, now_ms = Throttle(), keys_of("owner", "10.0.0.1", None), 0
    for _ in range(FREE_TRIES):
        tries.count_try(keys, now_ms)
    waits = []
    for _ in range(9):
        wait = wait_sec(tries, keys, now_ms)
        assert wait_sec(tries, keys, now_ms) == wait
        waits.append(wait)
        now_ms += wait * 1000
        tries.count_try(keys, now_ms)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_another_address_and_another_login_are_not_slowed() -> None:
    tries = Throttle()
    for _ in range(FREE_TRIES):
        tries.count_try(keys_of("owner", "10.0.0.1", None), 0)
    wait_sec(tries, keys_of("owner", "10.0.0.1", None), 0)
    tries.count_try(keys_of("owner", "10.0.0.2", None), 0)
    tries.count_try(keys_of("other", "10.0.0.1", None), 0)


def test_an_address_that_tries_many_logins_is_slowed_as_a_whole() -> None:
    tries = Throttle()
    for number in range(FREE_TRIES_OF_ADDRESS):
        tries.count_try(keys_of(f"login{number}", "10.0.0.1", None), 0)
    assert wait_sec(tries, keys_of("one-more", "10.0.0.1", None), 0) == 1
    assert WAIT_MAX_MS <= 60_000


def test_an_ipv4_host_is_itself_however_its_address_is_written() -> None:
    assert keys_of("a", "::ffff:10.0.0.1", None) == keys_of("a", "10.0.0.1", None)
    assert keys_of("a", "::ffff:10.0.0.1", None) != keys_of("a", "::ffff:10.0.0.2", None)


def test_an_ipv6_host_counts_by_its_network() -> None:
    assert keys_of("a", "2001:db8::1", None) == keys_of("a", "2001:db8::ffff:2", None)
    assert keys_of("a", "2001:db8::1", None) != keys_of("a", "2001:db8:0:1::1", None)


def test_success_and_time_forgive() -> None:
    tries, keys = Throttle(), keys_of("owner", "10.0.0.1", None)
    for _ in range(FREE_TRIES):
        tries.count_try(keys, 0)
    tries.forgive(keys)
    for _ in range(FREE_TRIES):
        tries.count_try(keys, 0)
    wait_sec(tries, keys, 0)
    tries.count_try(keys, FORGET_AFTER_MS)


def test_a_try_that_is_taken_back_leaves_those_before_it_counted() -> None:
    tries, keys = Throttle(), keys_of("owner", "10.0.0.1", None)
    for _ in range(FREE_TRIES - 1):
        tries.count_try(keys, 0)
    for _ in range(3):
        tries.count_try(keys, 0)
        tries.take_back(keys)
    tries.count_try(keys, 0)
    assert wait_sec(tries, keys, 0) == 1


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "KEYS_MAX", 10)
    tries = Throttle()
    for number in range(100):
        tries.count_try(keys_of("owner", f"10.0.0.{number}", None), 0)
    assert len(tries._tries) == 10


def test_a_device_is_known_for_its_login_only() -> None:
    devices = Devices(Secret("a key for devices"))
    cookie = devices.make("owner")
    device = devices.knows(cookie, "owner")

    assert device is not None
    assert devices.knows(cookie, "other") is None
    assert devices.knows(cookie + "0", "owner") is None
    assert devices.knows(f"forged.{cookie.partition('.')[2]}", "owner") is None
    for made_up in (None, "", ".", "x", "ä.ö"):
        assert devices.knows(made_up, "owner") is None
    assert Devices(Secret("another key")).knows(cookie, "owner") is None
    assert list(keys_of("owner", "10.0.0.1", device)) == [f"device {device}"]
