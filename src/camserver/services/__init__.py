"""One folder a service; service.py holds run(...)."""
