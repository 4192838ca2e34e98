"""Fans live pictures out: packets from a camera's worker, fragments to any number of viewers."""
