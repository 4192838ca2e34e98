"""All streams of this streamer: which viewings there are, who is attached to what, who feeds it, and what ends when.

Truth is the viewings' rows. Here is what was last read of them, and what hangs on it: sockets, HLS readers, feeds.
Nothing here waits for anything.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.live_links import Ticket
from camserver.services.streamer.feeds import FeedSocket
from camserver.services.streamer.stream import LiveStream
from camserver.services.streamer.viewers import SocketViewer, text_frame
from camserver.wire.live import (
    CLOSE_GOING_AWAY,
    CLOSE_GONE,
    CLOSE_OVER,
    CLOSE_REPLACED,
    CLOSE_SESSION_OVER,
    FEED_SILENT_SEC,
    FeedKey,
    FeedMessage,
    FeedWish,
    LiveViewing,
    Synced,
    ViewerCost,
    Watched,
    feed_key,
)

log = get_logger(__name__)

# A viewing that nobody has attached to yet is fed for so long: the browser is on its way.
EXPECTED_MS = 10_000
# HLS is over when nothing was asked for so long.
HLS_LINGER_MS = 5_000
# A feed may come before its viewing is known here.
UNKNOWN_FEED_MS = 3_000
# What can't be shown as it is and finds no room for a transcode is asked for again after so long.
ASK_AGAIN_MS = 5_000
# Reasons why a worker does not push a video as it is, though it would transcode it.
_NEEDS_TRANSCODE = frozenset({"codec", "masked"})
# So long viewers go on while nobody can say whether they may.
UNSURE_MS = 45_000
_CLOSE_CODES = {"session_over": CLOSE_SESSION_OVER, "camera_gone": CLOSE_GONE}


@dataclass(slots=True)
class Known:
    """A viewing, and who hangs on it."""

    viewing: LiveViewing
    seen_boot_ms: int
    socket: SocketViewer | None = None
    hls_boot_ms: int | None = None  # when it was last asked for
    was_attached: bool = False

    @property
    def is_attached(self) -> bool:
        return self.socket is not None or self.hls_boot_ms is not None


class Streams:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Known] = {}
        self._streams: dict[FeedKey, LiveStream] = {}
        self._feeds: set[FeedSocket] = set()
        self._nonces: dict[str, int] = {}
        # Streams that can't be shown as they are, and from when on room for a transcode is asked for (again).
        self._unplayable: dict[FeedKey, int] = {}
        self.synced_boot_ms = clock.boot_ms()
        # Called when something changed that the store should know soon.
        self.on_change: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[LiveStream]:
        return iter(tuple(self._streams.values()))

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def viewers(self) -> int:
        return sum(known.is_attached for known in self._known.values())

    @property
    def feeds(self) -> int:
        return len(self._feeds)

    @property
    def is_busy(self) -> bool:
        return bool(self._known or self._feeds)

    def viewing(self, lease_id: str) -> LiveViewing | None:
        known = self._known.get(lease_id)
        return None if known is None else known.viewing

    # Viewers --------------------------------------------------------------------------------------------------

    def attach(self, lease_id: str, hears: bool = False) -> SocketViewer | None:
        """A viewer for this viewing's socket; None when it is over. One that has it already is replaced."""
        known = self._known.get(lease_id)
        if known is None:
            return None
        if known.socket is not None:
            known.socket.end(CLOSE_REPLACED, "replaced")
            self._detach(known)
        known.socket = SocketViewer(lease_id, self._viewer_gone, self._not_played, hears)
        known.was_attached = True
        return known.socket

    def show(self, viewer: SocketViewer) -> None:
        """Its socket is open: pictures from now on."""
        known = self._known.get(viewer.lease_id)
        if known is None or known.socket is not viewer:
            viewer.end(CLOSE_OVER, "unknown")
            return
        self._stream(known).attach(viewer)
        self._tell_cost(known)
        self.on_change()

    def hls(self, lease_id: str) -> LiveStream | None:
        """The stream of this viewing for somebody who asks for segments now and then; None when it is over."""
        known = self._known.get(lease_id)
        if known is None:
            return None
        is_new = known.hls_boot_ms is None
        known.hls_boot_ms, known.was_attached = self._clock.boot_ms(), True
        stream = self._stream(known)
        stream.begin_segments()
        if is_new:
            self.on_change()
        return stream

    def stream_of(self, lease_id: str) -> LiveStream | None:
        known = self._known.get(lease_id)
        return None if known is None else self._streams.get(feed_key(known.viewing))

    def _viewer_gone(self, viewer: SocketViewer) -> None:
        known = self._known.get(viewer.lease_id)
        if known is not None and known.socket is viewer:
            self._detach(known)
            self._tidy()

    def _detach(self, known: Known) -> None:
        viewer, known.socket = known.socket, None
        stream = self._streams.get(feed_key(known.viewing))
        if viewer is not None and stream is not None:
            stream.detach(viewer)

    def _stream(self, known: Known) -> LiveStream:
        key = feed_key(known.viewing)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._new_stream(key)
            # It may be here before the first viewer.
            feed = next((feed for feed in self._feeds if feed.key == key), None)
            if feed is not None:
                stream.fed_by(feed)
            self._explain(stream, known.viewing)
        return stream

    def _new_stream(self, key: FeedKey) -> LiveStream:
        stream = self._streams[key] = LiveStream(key, self._clock)
        stream.on_unplayable = lambda stream: self._needs_transcode(stream.key)
        return stream

    def _not_played(self, viewer: SocketViewer) -> None:
        """Its browser does not play what the camera sends, which was not known when it was admitted.

        What every browser plays is not transcoded because somebody says so: others watch it, too.
        """
        known = self._known.get(viewer.lease_id)
        stream = self.stream_of(viewer.lease_id)
        if known is not None and known.socket is viewer and stream is not None and stream.codec not in ("", "h264"):
            self._needs_transcode(feed_key(known.viewing))

    def _needs_transcode(self, key: FeedKey) -> None:
        is_transcoded = key[-1]
        if not is_transcoded and key not in self._unplayable:
            self._unplayable[key] = self._clock.boot_ms()
            self.on_change()

    def unplayable(self) -> tuple[str, ...]:
        """Viewings that need a transcode and do not have it, one of each stream."""
        boot_ms = self._clock.boot_ms()
        asked = {
            feed_key(known.viewing): lease_id
            for lease_id, known in self._known.items()
            if self._unplayable.get(feed_key(known.viewing), boot_ms + 1) <= boot_ms
        }
        for key in asked:
            self._unplayable[key] = boot_ms + ASK_AGAIN_MS
        return tuple(asked.values())

    # Feeds ----------------------------------------------------------------------------------------------------

    def is_used(self, ticket: Ticket) -> bool:
        """Whether a ticket was used before; it is from now on."""
        now_ms = self._clock.now_ms()
        self._nonces = {nonce: until for nonce, until in self._nonces.items() if until >= now_ms}
        if ticket.nonce in self._nonces:
            return True
        self._nonces[ticket.nonce] = ticket.expires_at
        return False

    def feed(self, ticket: Ticket) -> FeedSocket:
        """For a socket with this ticket. An older feed of the same camera gives way."""
        feed = FeedSocket(ticket, self._clock.boot_ms, self._fed, self._feed_gone)
        for other in tuple(self._feeds):
            if other.key == feed.key:
                self._feeds.discard(other)
                other.close(CLOSE_REPLACED, "a newer feed of this camera is here")
        self._feeds.add(feed)
        stream = self._streams.get(feed.key)
        if stream is None:
            stream = self._new_stream(feed.key)
        stream.fed_by(feed)
        log.info("feed begins", camera_id=ticket.camera_id, quality=ticket.quality, worker_id=ticket.worker_id)
        self.on_change()
        return feed

    def _fed(self, feed: FeedSocket, message: FeedMessage) -> None:
        stream = self._streams.get(feed.key)
        if stream is not None and stream.feed is feed:
            stream.take(message)

    def _feed_gone(self, feed: FeedSocket) -> None:
        self._feeds.discard(feed)
        stream = self._streams.get(feed.key)
        if stream is not None and stream.feed is feed:
            log.info("feed ended", camera_id=feed.ticket.camera_id, quality=feed.ticket.quality)
            stream.fed_by(None)
            if stream.state in ("live", "stalled"):
                stream.set_status("moving", "moved")
            self.on_change()
            self._tidy()

    # The store ------------------------------------------------------------------------------------------------

    def wishes(self) -> tuple[Watched, ...]:
        """What viewings need, where the store does not know it yet."""
        found = []
        for lease_id, known in self._known.items():
            wish = self._wish(known)
            if wish != known.viewing.feed:
                found.append(Watched(lease_id=lease_id, feed=wish))
        return tuple(found)

    def asked(self) -> tuple[str, ...]:
        return tuple(self._known)

    def synced(self, answer: Synced) -> None:
        """What the store says: viewings that are new, go on, or are over."""
        boot_ms = self._clock.boot_ms()
        self.synced_boot_ms = boot_ms
        valid = {viewing.lease_id: viewing for viewing in answer.viewings}
        reasons = {gone.lease_id: gone.reason for gone in answer.gone}
        for lease_id in self._known.keys() - valid.keys():
            self._over(lease_id, reasons.get(lease_id, "unknown"))
        for lease_id, viewing in valid.items():
            known = self._known.get(lease_id)
            if known is None:
                self._known[lease_id] = Known(viewing, boot_ms)
            else:
                self._changed(known, viewing)
        for known in self._known.values():
            stream = self._streams.get(feed_key(known.viewing))
            if stream is not None:
                self._explain(stream, known.viewing)
                if known.viewing.lease_id in answer.no_room:
                    stream.set_status("refused", "no_room_to_transcode")
        self._tidy()

    def tick(self) -> None:
        """Once a second: what has been silent, unread or unwanted for too long."""
        boot_ms = self._clock.boot_ms()
        for known in self._known.values():
            if known.hls_boot_ms is not None and boot_ms - known.hls_boot_ms >= HLS_LINGER_MS:
                known.hls_boot_ms = None
        for feed in tuple(self._feeds):
            if boot_ms - feed.heard_boot_ms >= FEED_SILENT_SEC * 1000:
                log.warning("a feed fell silent and is dropped", camera_id=feed.ticket.camera_id)
                feed.close(CLOSE_GONE, "nothing came for too long")
        self._end_unsure(boot_ms)
        for stream in self:
            stream.tick()
        self._tidy()

    def close(self) -> None:
        """The server stops."""
        for known in self._known.values():
            if known.socket is not None:
                known.socket.end(CLOSE_GOING_AWAY, "server_stops")
        for feed in tuple(self._feeds):
            feed.close(CLOSE_GOING_AWAY, "the streamer stops")
        self._known.clear()
        self._streams.clear()

    # ----------------------------------------------------------------------------------------------------------

    def _wish(self, known: Known) -> FeedWish:
        if not self._is_wanted(known):
            return "idle"
        stream = self._streams.get(feed_key(known.viewing))
        return "wanted" if stream is None or stream.feed is None else "fed"

    def _is_wanted(self, known: Known) -> bool:
        if known.is_attached or known.viewing.kind == "prewarm":
            return True
        return not known.was_attached and self._clock.boot_ms() - known.seen_boot_ms < EXPECTED_MS

    def _changed(self, known: Known, viewing: LiveViewing) -> None:
        """A viewing that is transcoded from now on is shown from another stream."""
        old, known.viewing = known.viewing, viewing
        stream = self._streams.get(feed_key(old))
        if known.socket is not None and feed_key(old) != feed_key(viewing):
            if stream is not None:
                stream.detach(known.socket)
            self._stream(known).attach(known.socket)
        if (old.units, old.transcode) != (viewing.units, viewing.transcode):
            self._tell_cost(known)

    def told_in_lists(self, lease_id: str) -> list[str]:
        """What a socket would say beside the pictures, for whoever reads lists: it may begin at any time."""
        known = self._known.get(lease_id)
        stream = None if known is None else self._streams.get(feed_key(known.viewing))
        if known is None or stream is None:
            return []
        lines = [f"#CAMSERVER-SOUND:{stream.segment_sound}"] if stream.segment_sound else []
        note, source_codec = stream.note
        if note:
            lines.append(f"#CAMSERVER-NOTE:{note},{source_codec}")
        if known.viewing.transcode and known.viewing.units:
            lines.append(f"#CAMSERVER-UNITS:{known.viewing.units}")
        return lines

    def _tell_cost(self, known: Known) -> None:
        viewing = known.viewing
        if known.socket is not None and viewing.transcode and viewing.units:
            known.socket.send(text_frame(ViewerCost(units=viewing.units)))

    def _over(self, lease_id: str, reason: str) -> None:
        known = self._known.pop(lease_id)
        if known.socket is not None:
            viewer = known.socket
            self._detach(known)
            viewer.end(_CLOSE_CODES.get(reason, CLOSE_OVER), reason)
        log.info("viewing over", lease_id=lease_id, camera_id=known.viewing.camera_id, reason=reason)

    def _end_unsure(self, boot_ms: int) -> None:
        """The store can't be asked: nobody watches on beyond what is known of their viewing."""
        if boot_ms - self.synced_boot_ms < UNSURE_MS:
            now_ms = self._clock.now_ms()
            over = [lease_id for lease_id, known in self._known.items() if known.viewing.expires_at < now_ms]
            reason = "ttl"
        else:
            over, reason = list(self._known), "streamer_lost_store"
        for lease_id in over:
            self._over(lease_id, reason)

    def _explain(self, stream: LiveStream, viewing: LiveViewing) -> None:
        """How things stand while nobody feeds it; a feed of a holder that is none any more is ended."""
        if stream.feed is not None:
            if stream.feed.generation < viewing.generation:
                stream.feed.close(CLOSE_REPLACED, "the camera has moved")
                stream.fed_by(None)
                stream.set_status("moving", "moved")
                self.on_change()
            return
        if not viewing.is_held:
            stream.set_status("connecting", "no_worker")
        elif viewing.feed_reason:
            code, message = _reason(viewing.feed_reason)
            if code in _NEEDS_TRANSCODE:
                self._needs_transcode(stream.key)
            if stream.state != "refused":
                stream.set_status("waiting", code, message)
        elif stream.state not in ("moving", "refused", "waiting"):
            stream.set_status("connecting")

    def _tidy(self) -> None:
        """Ends what nobody wants: streams, segments, feeds."""
        boot_ms = self._clock.boot_ms()
        wanted = {feed_key(known.viewing) for known in self._known.values() if self._is_wanted(known)}
        segmented = {feed_key(known.viewing) for known in self._known.values() if known.hls_boot_ms is not None}
        changed = False
        for feed in tuple(self._feeds):
            if feed.key not in wanted and boot_ms - feed.begun_boot_ms >= self._feed_patience_ms(feed):
                self._feeds.discard(feed)
                feed.close(CLOSE_GONE, "nobody watches")
                changed = True
        fed = {feed.key for feed in self._feeds}
        for key in self._unplayable.keys() - wanted:
            del self._unplayable[key]
        for key, stream in tuple(self._streams.items()):
            if key not in segmented:
                stream.end_segments()
            if key not in wanted and key not in fed:
                del self._streams[key]
                changed = True
        if changed:
            self.on_change()

    def _feed_patience_ms(self, feed: FeedSocket) -> int:
        """One that nobody is known to want yet may be for a viewing that was made a moment ago."""
        is_known = any(feed_key(known.viewing) == feed.key for known in self._known.values())
        return 0 if is_known else UNKNOWN_FEED_MS


def _reason(text: str) -> tuple[str, str]:
    """`feed_reason` is what a worker said: a code, a colon and words; or words alone."""
    code, found, message = text.partition(": ")
    return (code, message) if found and code.isidentifier() else ("", text)
