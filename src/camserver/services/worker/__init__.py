"""The worker: holds leases on cameras, looks at them, keeps every look until the server has it (see service)."""
