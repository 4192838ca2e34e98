"""Why a connection failed, in words: what a library says of it is for its own developers."""

import os

import aiohttp


def cause_of(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        # Those of name servers are below zero, and have a text of their own.
        return os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
    return f"{type(error).__name__}: {error}"
