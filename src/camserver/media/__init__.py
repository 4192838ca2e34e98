"""Packet sources, pictures and fragments."""
