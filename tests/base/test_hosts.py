import pytest

from camserver.base.hosts import at_host


@pytest.mark.parametrize(
    ("url", "host", "moved"),
    [
        ("rtsp://10.0.0.9:8554/a?b=c", "10.0.0.7", "rtsp://10.0.0.7:8554/a?b=c"),
        ("rtsp://camera.lan/a", "10.0.0.7", "rtsp://10.0.0.7/a"),
        ("rtsps://[fd00::1]:322/a", "fd00::2", "rtsps://[fd00::2]:322/a"),
    ],
)
def test_only_the_host_changes(url: str, host: str, moved: str) -> None:
    assert at_host(url, host) == moved
