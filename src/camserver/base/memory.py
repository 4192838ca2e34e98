"""The C library's memory, for processes that work on pictures.

A picture takes megabytes for some milliseconds. By default glibc gives such memory back to the system at once and
asks for it again for the next picture; having each page made anew took a third of the time of a JPEG.
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


# What is larger is given back to the system as soon as it is freed.
LARGE_BYTES = 256 * 1024


def keep_freed() -> bool:
    """Has what is freed kept for the next one, within bounds. False where the C library has no such switch."""
    return _set(
        (_M_MMAP_THRESHOLD, FROM_HEAP_MAX_BYTES), (_M_TRIM_THRESHOLD, FREE_MAX_BYTES), (_M_ARENA_MAX, HEAPS_MAX)
    )


def give_back_large() -> bool:
    """Has pictures' memory given back when they are done with: for whoever works longer on each than that takes.

    Left alone, glibc learns to keep larger and larger pieces, and its heaps grew by 100 MB within 1,000 pictures.
    """
    return _set((_M_MMAP_THRESHOLD, LARGE_BYTES), (_M_ARENA_MAX, HEAPS_MAX))


def _set(*options: tuple[int, int]) -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    is_set = all(mallopt(option, value) for option, value in options)
    if not is_set:
        log.info("the C library does not let its memory be tuned")
    return is_set
