"""Tests mirror src/camserver; `rig` is the machinery they share, `fakes` are real servers that can misbehave."""
