"""Tests of the services, one folder each."""
