"""Tests of the camera simulator."""
