"""Scores the rows of a sheet with a language model; `pipeline.py` draws the stages."""
