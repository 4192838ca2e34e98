"""go2rtc as a camera: an RTSP server that nobody here wrote."""
