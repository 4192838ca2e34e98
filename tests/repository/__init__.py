"""Tests about the repository itself: set-up, locks, Makefile, import contracts, and docs that stay true."""
