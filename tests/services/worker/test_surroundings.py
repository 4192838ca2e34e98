"""What a worker tells of its looks: rates over the last minute, and how late they were."""

from camserver.services.worker.surroundings import RECENT_MAX, LookCounts


def test_rates_are_of_the_last_minute() -> None:
    counts = LookCounts()
    assert set(counts.rates(1_000_000).values()) == {0.0}
    for number in range(120):
        counts.kept(900_000 + number * 1000, latency_ms=number, is_passed=number % 4 == 0)
    told = counts.rates(1_019_000)
    assert told["decode_fps"] == 61 / 60
    assert told["detect_fps"] == 15 / 60
    assert told["latency_ms_p50"] == 89
    assert told["latency_ms_p95"] == 116
    assert counts.ok == 120
    assert counts.rates(2_000_000)["decode_fps"] == 0.0


def test_more_looks_than_are_remembered_are_a_rate_of_a_shorter_time() -> None:
    counts = LookCounts()
    for number in range(2 * RECENT_MAX):
        counts.kept(number, latency_ms=1, is_passed=True)
    told = counts.rates(2 * RECENT_MAX)
    assert 900 < told["decode_fps"] < 1_100
