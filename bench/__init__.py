"""Benchmarks: ours and a peer or the limit side by side, in one run. `make bench-NAME`; QUICK=1 for a short one."""
