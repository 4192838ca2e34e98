"""The C library's memory, for processes that work on pictures.

A picture takes megabytes for some milliseconds, and so does a model that looks at it. By default glibc gives such
memory back to the system at once and asks for it again for the next picture. Having each page made anew took a third
of the time of a JPEG, and a fifth of that of a model (2,400 pages a picture).
"""

import ctypes

from camserver.base.log import get_logger

log = get_logger(__name__)

# glibc's malloc.h. The largest size that it takes from its heaps, which is also the largest that may be set, and how
# much may lie free at the end of one.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
FROM_HEAP_MAX_BYTES = 32 * 1024 * 1024
FREE_MAX_BYTES = 64 * 1024 * 1024
# Threads share so many heaps. By default each of many threads gets one of its own, and over hours every one of them
# grows to the most its threads ever needed at once.
HEAPS_MAX = 2


def keep_freed() -> bool:
    """Has what is freed kept for the next one, within bounds. False where the C library has no such switch."""
    return _set(
        (_M_MMAP_THRESHOLD, FROM_HEAP_MAX_BYTES), (_M_TRIM_THRESHOLD, FREE_MAX_BYTES), (_M_ARENA_MAX, HEAPS_MAX)
    )


def _set(*options: tuple[int, int]) -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    is_set = all(mallopt(option, value) for option, value in options)
    if not is_set:
        log.info("the C library does not let its memory be tuned")
    return is_set
