"""What can be asked of the web service, one module a subject. `app.py` lists them."""
