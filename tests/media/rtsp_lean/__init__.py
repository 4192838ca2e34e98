"""The lean RTSP reader."""
