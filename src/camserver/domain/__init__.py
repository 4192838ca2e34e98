"""Pure rules, each beside its noun. No I/O; time comes in as `now_ms`."""
