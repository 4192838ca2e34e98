"""The analyzer: the analyzer contract over a real detector."""
