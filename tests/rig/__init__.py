"""Test machinery: databases, clock, processes, network faults, pictures. Nothing here knows a rule of the
product.

It needs no pytest (tests/conftest.py turns it into fixtures), so benchmarks use it too.
"""
