"""The boxes that an MP4 file is made of (ISO 14496-12)."""

import struct


def box(name: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return struct.pack(">I", 8 + len(content)) + name + content


def full_box(name: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    return box(name, struct.pack(">I", version << 24 | flags), *parts)
