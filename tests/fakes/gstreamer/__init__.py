"""Cameras of somebody else: GStreamer's RTSP server, run by the system's Python, which has its bindings."""
