"""Tests of picture sources and picture work."""
