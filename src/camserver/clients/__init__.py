"""Clients of services outside: one module each."""
