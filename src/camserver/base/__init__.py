"""What everything stands on: clock, errors, log, secrets, supervise."""
