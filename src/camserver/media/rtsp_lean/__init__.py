"""A lean reader of H.264 and H.265 over RTSP, for nearly all cameras.

    messages   requests and replies          units     pictures out of RTP packets (RFC 6184, 7798)
    describe   a camera's description        wire      what stands where in the bytes that arrive
    session    the dialogue with a camera    reader    the packet source
    udp        ports and order of packets    pump      reads all cameras in one thread

It takes a fraction of the work of FFmpeg's reader, knows digest with SHA-256 and checks certificates. What it does
not know (another codec, another way of packing) it says by `Unfit`, and FFmpeg reads that camera for a while.
"""
