from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.devices import Place, Traffic, Wish, crowded, place_at, subnet_of, to_open
from camserver.domain.looks import LookPolicy

POLICY = LookPolicy(opening_max=4, opening_subnet_max=2, device_streams_max=3)
NOTHING = Traffic({}, {})


def test_a_camera_is_its_own_device_unless_somebody_says_otherwise() -> None:
    assert place_at("10.0.1.7", 554) == Place("10.0.1.7:554", "10.0.1.0/24")
    assert place_at("10.0.1.7", 554, "recorder") == Place("recorder", "10.0.1.0/24")
    assert not Place().is_limited


def test_neighbours_share_a_subnet() -> None:
    assert subnet_of("192.168.1.1") == subnet_of("192.168.1.254") != subnet_of("192.168.2.1")
    assert subnet_of("fe80::1%eth0") == subnet_of("fe80::2")


def test_nobody_is_held_up_by_somebody_else_s_device() -> None:
    nvr, other = Place("nvr", "a"), Place("other", "b")
    full = Traffic({"nvr": 1}, {})
    assert to_open([Wish(nvr), Wish(other)], full, {"nvr": 1}, POLICY) == [1]
    assert to_open([Wish(nvr), Wish(other)], NOTHING, {"nvr": 1}, POLICY) == [0, 1]


def test_urgent_ones_go_first_then_those_that_came_first() -> None:
    nvr = Place("nvr", "a")
    assert to_open([Wish(nvr), Wish(nvr), Wish(nvr, True)], NOTHING, {"nvr": 1}, POLICY) == [2]
    assert to_open([Wish(nvr), Wish(nvr)], NOTHING, {"nvr": 1}, POLICY) == [0]


def test_only_so_many_open_at_once_in_a_subnet_and_altogether() -> None:
    wishes = [Wish(Place(f"cam{number}", f"net{number // 5}")) for number in range(20)]
    assert to_open(wishes, NOTHING, {}, POLICY) == [0, 1, 5, 6]
    assert to_open(wishes, Traffic({}, {"net0": 2, "net9": 1}), {}, POLICY) == [5]


def test_streams_give_way_only_where_somebody_waits_for_their_device() -> None:
    nvr, camera = Wish(Place("nvr", "a")), Wish(Place("cam", "a"))
    busy = Traffic({"nvr": 2, "cam": 1}, {})
    assert crowded([nvr, camera], busy, {"nvr": 2}, POLICY) == {"nvr": 1}
    assert crowded([nvr, nvr, nvr], busy, {"nvr": 2}, POLICY) == {"nvr": 2}
    assert crowded([], busy, {"nvr": 2}, POLICY) == {}


PLACES = st.builds(Place, st.sampled_from("ABCDE"), st.sampled_from("xy"))
COUNTS = st.dictionaries(st.sampled_from("ABCDE"), st.integers(0, 5))


@given(
    st.lists(st.builds(Wish, PLACES, st.booleans()), max_size=20),
    COUNTS,
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("ABCDE"), st.integers(1, 4)),
)
def test_never_more_than_is_borne_and_never_less_than_could_go(
    wishes: list[Wish], open_streams: dict[str, int], opening: dict[str, int], limits: dict[str, int]
) -> None:
    chosen = to_open(wishes, Traffic(open_streams, opening), limits, POLICY)
    assert len(set(chosen)) == len(chosen)
    streams, subnets = Counter(open_streams), Counter(opening)
    for number in chosen:
        streams[wishes[number].place.device] += 1
        subnets[wishes[number].place.subnet] += 1
    limit = {device: limits.get(device, POLICY.device_streams_max) for device in "ABCDE"}
    for number in chosen:
        place = wishes[number].place
        assert streams[place.device] <= limit[place.device]
        assert subnets[place.subnet] <= POLICY.opening_subnet_max
    assert not chosen or subnets.total() <= POLICY.opening_max
    for number in set(range(len(wishes))) - set(chosen):
        place = wishes[number].place
        assert (
            streams[place.device] >= limit[place.device]
            or subnets[place.subnet] >= POLICY.opening_subnet_max
            or subnets.total() >= POLICY.opening_max
        )
