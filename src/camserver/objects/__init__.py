"""Pictures and clips behind one interface."""
