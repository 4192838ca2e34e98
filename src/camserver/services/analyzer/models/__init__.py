"""Models as people install them: bundles that are checked, kept side by side and exchanged while requests run."""
