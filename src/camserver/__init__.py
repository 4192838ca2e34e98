"""camserver: a self-hosted camera server."""

__version__ = "0.1.0"
