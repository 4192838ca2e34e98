"""What the streamer, the worker and the viewers of the live bench agree on."""

from camserver.domain.live_links import live_keys

KEYS = live_keys(b"a media key of the bench")
STREAMER, TENANT = "bench", 1
