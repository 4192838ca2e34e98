"""The web service: API, pages and identity. `service.py` runs it."""
