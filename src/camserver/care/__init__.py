"""Looking after an installation: backups, checks, the report for a bug, installing on a machine."""
