"""What was measured of the last pictures. The one before is mostly the one that was new a request ago.

What a picture measures follows from its bytes alone, so an answer is the same with and without this. The pictures
themselves are not kept, and what is kept is bounded. Nothing is lost with it: it only spares work.
"""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import replace

from camserver.services.analyzer.observing import Sight

# Of a picture of 16:9 there are 58 kB: those of about 280 cameras.
BYTES_MAX = 16_000_000


class Remembered:
    """For any number of threads. The one that was asked for the longest ago is forgotten first."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._sights: OrderedDict[bytes, Sight] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, picture: bytes) -> Sight | None:
        key = _key(picture)
        with self._lock:
            sight = self._sights.get(key)
            if sight is not None:
                self._sights.move_to_end(key)
            return sight

    def put(self, picture: bytes, sight: Sight) -> None:
        key = _key(picture)
        with self._lock:
            if key in self._sights:
                self._sights.move_to_end(key)
                return
            self._sights[key] = replace(sight, picture=None)
            self._bytes += sight.gray.nbytes
            while self._bytes > self._bytes_max:
                self._bytes -= self._sights.popitem(last=False)[1].gray.nbytes


def _key(picture: bytes) -> bytes:
    # Nobody can make two pictures of the same one, so nobody can have another's picture taken for theirs.
    return hashlib.sha256(picture).digest()
