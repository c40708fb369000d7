"""How this process asks the system for memory."""

from __future__ import annotations

import ctypes

# Parameters of glibc's `mallopt`.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_NEVER, _ONE_GIBIBYTE = -1, 1 << 30


def keep_freed_memory() -> None:
    """Let the process keep what it frees, for it will want as much again in a moment.

    A step of training frees hundreds of megabytes and takes them again. By default the C library
    gives blocks of that size back to the system at once, which then fills new ones with zeros,
    page by page: up to a quarter of the time of a step. For commands only, whose process is
    theirs. Other C libraries than glibc do as they always do.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    set_option(_MMAP_THRESHOLD, _ONE_GIBIBYTE)
    set_option(_TRIM_THRESHOLD, _NEVER)
