"""The host in an address, and how it is written there."""

from urllib.parse import urlsplit, urlunsplit


def at_host(url: str, host: str) -> str:
    """The same address at another host; port, path and query stay."""
    parts = urlsplit(url)
    shown = in_address(host)
    return urlunsplit(parts._replace(netloc=shown if parts.port is None else f"{shown}:{parts.port}"))


def reached_at(listening: str) -> str:
    """Where a program on this machine reaches one that listens on `listening`, which may mean every address."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listening, listening)


def in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
