"""The host in an address."""

from urllib.parse import urlsplit, urlunsplit


def at_host(url: str, host: str) -> str:
    """The same address at another host; port, path and query stay."""
    parts = urlsplit(url)
    shown = f"[{host}]" if ":" in host else host
    return urlunsplit(parts._replace(netloc=shown if parts.port is None else f"{shown}:{parts.port}"))
