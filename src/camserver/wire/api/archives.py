"""What archives can be told, part by part; the models are in `receivers`."""

import json
import re
from typing import Annotated

from pydantic import AfterValidator, Field

_FOLDER = re.compile(r"/[^\x00-\x1f\x7f]*")
_PREFIX = re.compile(r"[A-Za-z0-9._+-]+(/[A-Za-z0-9._+-]+)*")
KEY_FILE_MAX_CHARS = 10_000


def _whole_path(value: str) -> str:
    if not _FOLDER.fullmatch(value) or any(part in (".", "..") for part in value.split("/")):
        raise ValueError("must be a whole path such as /mnt/archive, without . and ..")
    return value


def _key_prefix(value: str) -> str:
    value = value.strip("/")
    if value and (not _PREFIX.fullmatch(value) or any(part in (".", "..") for part in value.split("/"))):
        raise ValueError("may hold letters, digits, . _ + - and slashes")
    return value


def _key_file(value: str) -> str:
    """Whether it looks like a key file; the rest is said when it is used."""
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("type") != "service_account" or "private_key" not in told:
        raise ValueError("must be the JSON key file of a Google service account, as a text")
    return value


FolderPath = Annotated[str, Field(min_length=2, max_length=1024), AfterValidator(_whole_path)]
BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
# With a copy's own path a key has at most 255 characters.
KeyPrefix = Annotated[str, Field(max_length=60), AfterValidator(_key_prefix)]
Region = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,32}$")]
AccessKeyId = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]
DriveFolderId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
ActAs = Annotated[str, Field(max_length=255, pattern=r"^[^@\s]+@[^@\s]+$")]
KeyFile = Annotated[str, Field(max_length=KEY_FILE_MAX_CHARS, repr=False), AfterValidator(_key_file)]
