"""The simulator: RTSP cameras for people without cameras, and for tests."""
